// tracefrag: reservations in the text form of the tool of that name, for who has scripts that read
// it: those that leave the rest of a 64 KiB slot unused, by stack.
//
//     0x<hash of the stack> <number of the stack>
//       [<frame>] <address> <module>!<function>
//       #<n> <address> <size> <type> <protection> <allocated> <freed>
//
// each line after "YYYYMMDDHHMMSSmmm <pid> <sec>.<hundredths>: trcmem<bits>: ". Addresses and
// hashes are hexadecimal without a 0x but where it is shown, sizes and ticks (milliseconds since
// the process began) decimal, type and protection hexadecimal. The type of a Windows program's
// reservation is what it asked for; else those of Windows that come nearest (type 2000 reserved,
// 3000 and committed at once; protection 1 none, 2 r, 4 rw, 20 rx, 40 rwx). The filters by thread,
// size and function choose what is listed.
//
// Unlike the original: #n is one serial over the whole run, and not one for each stack; what is
// decommitted is not taken for released; stacks are distinguished by themselves, not by their hash;
// an address that is used again is a reservation of its own; only the process's own are listed. A
// frame whose function is not known is <module>+0x<offset>; where it is, no offset is after it.
// A reservation is freed when nothing of it is mapped any more; 0: at exit some of it still was.
#pragma once

#include "report/ask/moment_view.h"

// What can be asked of reservations.
extern const struct query_context_rules tracefrag_rules;

// Reads the trace once. `asked` is open; it needs not to have been read.
void tracefrag_write(struct query_context *asked, process_id process, struct sink *sink);
