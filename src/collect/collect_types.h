// collect_types: what the collector and who launches it give each other: options, functions that
// the launcher has and the collector calls, messages, and what it comes to.
#pragma once

#include "base/err.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

struct collect_message;
struct door;
struct trace_reach;
struct writer;

// How blocks are found that a process can reach (reachability.h): by who launches us, because the
// collector does not know blocks. Called in the collector's thread, but for `read` of a copy.
struct collect_reach {
	// Stop all its threads. NULL: `err` says why not. Below `dead_stack` the first one's stack
	// has nothing of the program's any more; 0: it may have.
	void *(*stop)(uint32_t pid, uint64_t dead_stack, struct err *err);
	// Copy what it has; it goes on, and was stopped for so long. False: it cannot be copied,
	// and is stopped still.
	bool (*copy)(void *stopped, uint64_t *stopped_ns);
	// The trace has everything that the process did before the event `reach->number`: fill in
	// flags, read_bytes and the blocks. Of a copy this may be called in any thread.
	bool (*read)(void *stopped, int trace_fd, process_id process, struct trace_reach *reach,
		     struct err *err);
	// A copy is not wanted any more: `read` is to fail soon. From any thread.
	void (*abandon)(void *stopped);
	// It goes on, or the copy is no more. Returns how long it was stopped; 0 of a copy.
	uint64_t (*release)(void *stopped);
};

enum collect_keep_wish {
	COLLECT_KEEP_NOTHING,
	COLLECT_KEEP_FLUSH, // what was delivered is to be in the file: then say so by `flushed`
	COLLECT_KEEP_HOLD,  // the same, and nothing more is to be delivered
	COLLECT_KEEP_TAKE,  // go on with the writer that `take` gives
	COLLECT_KEEP_SAY,   // warn of `text`, and do not hold any more
	COLLECT_KEEP_GO_ON, // do not hold any more
};

// How the trace is kept short while it is written (record --keep, --max-size, --rotate): by who
// launches us, because the collector does not read traces. Called in the collector's thread.
struct collect_keep {
	void *(*begin)(const void *wishes, int output_fd);
	// After each pass, with what was written by now.
	enum collect_keep_wish (*wish)(void *keep, uint64_t trace_bytes, uint64_t now_ns);
	void (*flushed)(void *keep);
	// The writer of the new file, which is the caller's; its descriptor is needed until
	// `taken`. The old file is ended first where `ends` says so.
	bool (*ends)(void *keep);
	struct writer *(*take)(void *keep);
	void (*taken)(void *keep);
	const char *(*text)(void *keep);
	// Leave off, before anything is delivered that was held. True: `take` first, it was done.
	bool (*stop)(void *keep);
	void (*end)(void *keep);
};

// How the recorder comes into a static program that a recorded process is about to execute: by
// ptrace, and so by who launches us. Both are called in one thread of the door's.
struct collect_enter {
	// `file`: the program, open. Its thread `tid` is to stop when it has executed it. 0, or an
	// enum note_exec: it will not be recorded, and goes on.
	uint32_t (*prepare)(uint32_t tid, int file);
	// It may go on, and execute. Returns when the program was entered and runs, or nothing was
	// executed, which a byte from `connection` says. False: it runs without, `err` says why.
	bool (*finish)(uint32_t pid, uint32_t tid, int connection, struct err *err);
};

struct collect_options {
	int output_fd;           // the trace; stays the caller's
	const char *socket_name; // abstract, without the leading NUL; borrowed
	struct trace_info info;  // tick_ns and began_unix_ns are filled in by collect_run; borrowed
	uint32_t segment_options; // enum segment_option

	// A SOCK_SEQPACKET socket to the launcher, or -1. Messages of `struct collect_message` both
	// ways. Its end of file means that the launcher is gone.
	int report_fd;

	// Instead of the socket, where the launcher is in this process: what is said is given to
	// `tell`, in our thread. `*door` receives the door before COLLECT_READY. NULL: none.
	void (*tell)(void *context, const struct collect_message *message);
	void *tell_context;
	struct door **door;

	int stop_fd;     // when this becomes readable (a signalfd), finish; -1: none
	int before_fd;   // a file of struct collect_block, as many as there are; -1: none
	int listen_fd;   // a listening socket that is used instead of socket_name; -1: none
	bool until_idle; // nobody will say when the main program has ended
	const struct collect_reach *reach; // NULL: reachability is not asked for
	const char *reach_mark; // at this mark, too; shorter than SEGMENT_MARK_BYTES; NULL: none
	const struct collect_keep *keep;   // NULL: the trace has the whole recording
	const void *keep_wishes;           // for it; borrowed
	const struct collect_enter *enter; // NULL: static programs are not entered
	uint32_t overhead_max; // with SEGMENT_BUDGET: millionths of the programs' time; else 0
	bool attached; // the launcher is in a program that ran: the recording ends with either
};

// A block that a process had before it was attached to.
struct collect_block {
	uint64_t address, size;
};

// What was collected; sent to the launcher in COLLECT_DONE.
struct collect_summary {
	uint64_t events;
	uint64_t events_lost;
	uint64_t events_gone;     // of what was delivered, what the trace has no room for
	uint64_t events_left_out; // of `events`, by what keeps the trace short
	uint64_t processes;
	uint64_t forked; // of them, copies of another one, with its blocks
	uint64_t duration_ns;
	uint64_t trace_bytes;
	uint64_t waited_ns;
	uint64_t order_breaks; // places where the program's events have no possible order
	bool complete;         // the trace is whole
	bool nobody;           // nothing was heard of any program, and no reason is known
	bool sampled;          // of some calls, or of all, samples are in the trace alone

	// Lifetimes begun and ended (a realloc is one of each), and bytes asked for; for the line
	// that the user sees. Of a forked process, those that it inherited are among those ended.
	uint64_t allocations;
	uint64_t frees;
	uint64_t allocated_bytes;
};

enum collect_message_kind {
	COLLECT_READY = 1,   // collector: the socket listens; start the program
	COLLECT_WARNING = 2, // collector: text is one line for the user
	COLLECT_STOPPED = 3, // collector: the recording is over early; text says why
	COLLECT_DONE = 4, // collector: the trace is closed; summary is set, text says why not whole
	COLLECT_ENDED = 5, // launcher: the main program `pid` ended with wait status `status`
	COLLECT_STOP = 6,  // launcher: finish now, whatever is still running
	COLLECT_MARK = 7,  // launcher: place the mark `text` here
	COLLECT_NOTE = 8,  // launcher: of `pid`, `text` is something that readers should know
	COLLECT_LEAVE = 9, // collector: somebody asks from outside to end the recording
	COLLECT_HOLD = 10, // launcher: deliver nothing more until COLLECT_BEFORE
	COLLECT_HELD = 11, // collector: it does not
	// launcher: the blocks that `pid` had before are in before_fd; or `text` says why not
	COLLECT_BEFORE = 12,
	COLLECT_UNSEEN = 13, // launcher: the program itself is not recorded; text says why
	// launcher: as COLLECT_STOP, but programs go on at once, and not when that is heard
	COLLECT_CUT = 14,
};

// One datagram, always sent whole.
struct collect_message {
	uint32_t kind; // enum collect_message_kind
	uint32_t pid;
	int32_t status;
	uint32_t reserved;
	struct collect_summary summary;
	char text[512]; // NUL-terminated
};
