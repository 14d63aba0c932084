// html_export: the page with its data inside, as one file that needs no server (docs/viewer.md).
//
// The data are what the server would answer, and what is needed to answer windows of whole buckets
// (aggregate.h). Where they do not fit, they are made coarser, and the page says so.
//
// For example `tidemark view a.tide --html a.html --max-bytes 20M`.
#pragma once

#include "view/viewer.h"

struct html_export_options {
	const char *path;
	uint64_t bytes_max; // of the file
	bool scrub;         // without paths and arguments (scrub.h)
	// Without it, it is a mistake that it is there.
	bool force; // a file that is there is replaced
};

// `viewer` is asked by nobody else meanwhile. ERR_LIMIT: it cannot be made so small. The file is
// whole or not there.
bool html_export_write(struct viewer *viewer, const struct html_export_options *options,
		       struct err *err);
