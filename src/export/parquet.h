// parquet: a table of rows as a Parquet file (https://parquet.apache.org/docs/file-format/).
//
// A batch of rows becomes a row group; the footer says where each is. Pages are compressed with
// zstd. Columns of few values and texts have dictionaries, numbers that are near each other are
// kept as differences; which it is may differ between row groups. Each chunk says its least and
// greatest value, so that readers leave out row groups. No value is missing, so there are no levels
// but those of lists. Memory: that of one column of a batch, and some 2 KB for each row group. One
// thread.
#pragma once

#include "export/rowset.h"

// Where the files of several tables go: `open` gives the sink of one, `close` ends it.
struct parquet_files {
	struct sink *(*open)(void *context, const struct rowset_table *table, struct err *err);
	bool (*close)(void *context, struct err *err);
	void *context;
};

// Write tables (a set of 1 << enum rowset_table_id), each to a file of its own.
bool parquet_write(const struct export_source *source, unsigned tables,
		   const struct parquet_files *files, struct err *err);
