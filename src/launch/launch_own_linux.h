// launch, between its parts on Linux: a recording while it runs (launch_linux.c), and what is other
// where the program ran before it (launch_attach_linux.c).
#pragma once

#include "launch/attacher_linux.h"
#include "launch/collector_process_linux.h"
#include "launch/follower_linux.h"
#include "launch/indexer_linux.h"
#include "launch/inspect.h"
#include "launch/launch_own.h"
#include "launch/preload.h"
#include "launch/starter_posix.h"

#include <limits.h>
#include <sys/utsname.h>

enum { LAUNCH_START_MS = 10000 }; // for the collector to begin, and to answer

// One recording while it runs. On the stack of launch_run, which closes and frees all that is here.
// One thread. Descriptors are -1 where there is none.
struct launch {
	const struct launch_options *options; // borrowed, as is `result`
	struct launch_result *result;         // what the caller gets, filled in on the way
	struct inspect inspect;               // what kind of program it is
	struct str program;                   // the file
	struct str library;                   // for programs of 64 bits
	struct str either; // the same with "$LIB" in it, for programs of 32 bits too; empty: none
	char session[PRELOAD_SESSION_BYTES]; // its name, by which guests find the collector
	char **environment; // of the program: ours, with LD_PRELOAD and the session
	struct starter starter;
	struct collector_process collector_process;
	struct indexer indexer;
	struct follower follower;
	int output_fd; // the trace, until the collector has it
	struct output_made output;
	int signal_fd;      // a signalfd: what signals come to us
	pid_t program_pid;  // 0: it has ended
	bool told_waiting;  // that it is waited for what the program left behind
	bool hung_up;       // the terminal is gone, and the program has its signal
	bool asked_to_stop; // the collector was asked to end the recording
	int wishes;         // signals that end a program, since the collector has moved last
	int still;          // looks at the collector since then
	bool told_still;
	bool cut;                  // programs go on without it
	uint64_t look_ns, wait_ns; // next look; since when only the collector is waited for, or 0
	bool started;              // the program was let go
	bool seized;               // it is static, and stops at its start
	bool stopped;              // the collector said why it records no more
	bool attached;             // the recorder is in a program that is not our child
	char **arguments;          // of that one
	struct attacher_figures figures;
	uint64_t before_count;             // blocks that it had
	int before_fd;                     // what that one had allocated before; -1: none
	int program_fd;                    // of that one, to notice its end; -1: none
	int timer_fd;                      // when the recording is to end; -1: with the program
	struct str command;                // for trace_info
	char directory[PATH_MAX];          // where we were started; "?": not known
	char host[sizeof(struct utsname)]; // system, release and machine
};

// Deal with what the collector says next, and give it to the caller in *message; waits
// `patience_ms`, or with -1 until it comes. False: it has nothing more to say, or it did not come
// in time.
bool launch_hear(struct launch *launch, struct collect_message *message, int patience_ms);

// Look at a program that runs (options->attach_pid): its file and its arguments. False: result->end
// and *err say why it cannot be attached to.
bool launch_look_at_running(struct launch *launch, struct err *err);

// Bring the recorder in, once the collector listens. The program's threads are stopped meanwhile.
// False: *err says why, and the program runs on, unrecorded.
bool launch_attach(struct launch *launch, struct err *err);

// Take the recorder out of a program that runs on; nothing where it is not in one.
void launch_detach(struct launch *launch);

// For readers of the trace: what attaching cost the program.
void launch_note_attached(const struct launch *launch);
