// import_formats: the formats that there are, a file each.
//
// import_formats (import.h) has them in the order in which they are asked whether an input is
// theirs; here they are in any.
#pragma once

#include "import/import.h"

// Each is defined in the file of its name, and is constant. A new one is a line here, a file, and
// its place in import_formats.
extern const struct import_format import_csv;
extern const struct import_format import_jsonl;
extern const struct import_format import_heap_text;
extern const struct import_format import_heaplog;
extern const struct import_format import_heaptrack;
extern const struct import_format import_lsan;
extern const struct import_format import_lttng;
extern const struct import_format import_massif;
extern const struct import_format import_memcheck;
extern const struct import_format import_memleak;
extern const struct import_format import_mtrace;
extern const struct import_format import_perf;
extern const struct import_format import_pprof;
extern const struct import_format import_tracefrag;
extern const struct import_format import_tracker;
extern const struct import_format import_dhat;
extern const struct import_format import_etl;
