// control: what `tidemark ctl` says to a collector from outside, and what it hears.
//
//     control_listen         a collector, under a name that has its pid in it
//       control_read           a request, and who sent it
//       control_reply
//     control_ask            ctl: asks all collectors that there are until one knows the process
//
// Datagrams between abstract sockets. A request is not to be trusted, except for the sender's user,
// which comes from the kernel: the collector's own, or root.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_MAGIC = 0x6c746374, CONTROL_TEXT_MAX = 256 };

enum control_verb {
	CONTROL_MARK = 1,         // `text`: its name
	CONTROL_STOP = 2,         // leave the process's allocations out from here on
	CONTROL_START = 3,        // and record them again
	CONTROL_DETACH = 4,       // end the recording; the programs go on
	CONTROL_REACHABILITY = 5, // search the process now; answered when that is done
	CONTROL_SAVE = 6,  // all that was delivered is put into the file; answered as CONTROL_WHERE
	CONTROL_WHERE = 7, // the answer's text is the path of the trace
	CONTROL_SAMPLE = 8, // `value`: a power of two, OVERHEAD_ALL or OVERHEAD_AUTO (overhead.h)
};

enum control_status {
	CONTROL_DONE = 1,
	CONTROL_UNKNOWN = 2, // this collector does not record such a process
	CONTROL_REFUSED = 3, // text says why
	CONTROL_FOREIGN = 4, // it does not say which it records: who asks is another user
};

struct control_request {
	uint32_t magic;
	uint32_t verb; // enum control_verb
	uint32_t pid;
	uint32_t value;
	char text[CONTROL_TEXT_MAX]; // CONTROL_MARK: its name; NUL-terminated
};

struct control_answer {
	uint32_t magic;
	uint32_t status; // enum control_status
	char text[CONTROL_TEXT_MAX];
};

// Who sent it, to answer.
struct control_sender {
	char name[16];
	uint32_t length;
};

// A descriptor, or -1: then nobody can say anything.
int control_listen(void);

// False: there is none that may be heard. Does not wait. A sender of another user is answered here,
// with CONTROL_FOREIGN. The text ends with a NUL.
bool control_read(int fd, struct control_request *request, struct control_sender *sender);
// One who is gone, or does not listen, gets no answer, and nothing says so. A longer text is cut.
void control_reply(int fd, const struct control_sender *sender, enum control_status status,
		   const char *text);

// False: nobody records the process, or it was refused, or the collector did not answer. `text`
// (NULL: unwanted) is what it answered: to CONTROL_WHERE and CONTROL_SAVE the path of the trace, to
// others what is to be printed.
bool control_ask(const struct control_request *request, char text[CONTROL_TEXT_MAX],
		 struct err *err);

// The path of the trace, into `text`; false, and why: it has none. Then `text` is the reason.
bool control_where(int fd, char text[CONTROL_TEXT_MAX]);
