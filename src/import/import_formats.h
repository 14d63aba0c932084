// import_formats: the formats that there are, a file each.
//
// import_formats (import.h) has them in the order in which they are asked whether an input is
// theirs; here they are in any.
#pragma once

#include "import/import.h"

// Each is defined in the file of its name, and is constant. A new one is a line here, a file, and
// its place in import_formats.
extern const struct import_format import_csv;       // events, with a header (rows.h)
extern const struct import_format import_jsonl;     // events, an object a line (rows.h)
extern const struct import_format import_heap_text; // heap profiles: jemalloc, gperftools
extern const struct import_format import_heaplog;   // records of docs/heaplog.md
extern const struct import_format import_heaptrack; // raw and interpreted
extern const struct import_format import_lsan;      // LeakSanitizer's report
extern const struct import_format import_lttng;     // as babeltrace2 prints it
extern const struct import_format import_massif;    // Valgrind's snapshots
extern const struct import_format import_memcheck;  // Valgrind's report of leaks
extern const struct import_format import_memleak;   // bcc's report, now and then
extern const struct import_format import_mtrace;    // glibc's log
extern const struct import_format import_perf;  // probes on malloc, as `perf script` prints them
extern const struct import_format import_pprof; // profile.proto: snapshots
extern const struct import_format import_tracefrag; // reservations (report/tracefrag.h)
extern const struct import_format import_tracker;   // memory_tracker's text
extern const struct import_format import_dhat;      // Valgrind's, and the crate's: JSON
extern const struct import_format import_etl;       // Windows' own tracing (etl_file.h)
