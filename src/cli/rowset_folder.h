// rowset_folder: the tables of a trace as a folder of Parquet files, TABLE.parquet each, which
// appears whole or not at all.
#pragma once

#include "export/rowset.h"

// Whether it can be made, as far as it can be known before the work. `replace`: one that is there
// goes away if there is nothing but tables in it.
bool rowset_folder_check(const char *path, bool replace, struct err *err);
bool rowset_folder_write(const struct export_source *source, const char *path, bool replace,
			 struct err *err);

// Remove it and the tables in it; what else is in it stays, and so does the folder then.
void rowset_folder_remove(const char *path);
