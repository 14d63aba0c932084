// keeper: keeps the trace of a recording short while it is written (record --keep, --max-size,
// --rotate).
//
// When the file is long enough, it is rewritten beside the collector, without what is too old:
// what lived when its window begins stays, with the calls that began it (trim_newest.h).
// The new file takes the old one's name, and the collector goes on with it:
//
//     collector                         keeper's thread
//     writes the trace                  reads it, finds what lived, writes the new file
//     flushes, when asked to            reads on, until little is left
//     flushes, and holds                reads the rest; the new file gets the name
//     goes on with the new file
//
// For example with --max-size 1G: at 768 MiB the newest 256 MiB are copied, and what comes
// meanwhile, so that the file is some 300 MiB when it is done. While it holds, events wait in their
// lanes, some milliseconds as a rule. A file that reaches its size before the new one is done
// holds, too: then programs wait.
//
// One that is killed meanwhile leaves the old file as it was, and the new one as NAME.PID.part.
#pragma once

#include "collect/collect.h"

// For collect_options; its wishes are a struct keep_wishes (keep_wishes.h).
extern const struct collect_keep keeper_calls;
