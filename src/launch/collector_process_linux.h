// collector_process: the collector's process, as the launcher sees it.
//
// A child in a process group of its own, so that the terminal's signals do not reach it, with
// nothing open but the trace and a socket to us. It lives on when we are killed, until the
// recording ends.
#pragma once

#include "base/err.h"
#include "collect/collect.h"

#include <sys/types.h>

struct collector_process {
	pid_t pid;                // 0: none, or it was waited for
	int fd;                   // the socket; -1: closed, it has nothing more to say
	unsigned long long turns; // how often it had a processor, when it was looked at last
	bool stopped;             // it was found stopped then, by a signal
	bool killed;
};

// The program's limits are not the collector's: this process's own are raised, as far as it may.
void collector_process_raise_limits(void);

// Start a collector with `options` (its descriptors are replaced by copies).
bool collector_process_open(struct collector_process *collector_process,
			    const struct collect_options *options, struct err *err);

// The next message. False at the end: the collector is gone or has nothing more to say, and where
// `patience_ms` is not negative, also when it says nothing for so long.
bool collector_process_read(struct collector_process *collector_process,
			    struct collect_message *message, int patience_ms);

// Tell it something; a collector that is gone is noticed at the next read.
void collector_process_send(const struct collector_process *collector_process,
			    enum collect_message_kind kind, pid_t pid, int status);

// The same, with a text.
void collector_process_say(const struct collector_process *collector_process,
			   enum collect_message_kind kind, pid_t pid, const char *text);

// Take note of its end, if it has ended: a guest can tell a dead collector from a living one only
// once we did.
void collector_process_reap(struct collector_process *collector_process);

// Whether it has done anything since it was looked at last, or does now. One that lives wakes up
// many times a second: one that does not is stopped, or held by the file that it writes to. Where
// the system does not say, it has.
bool collector_process_moved(struct collector_process *collector_process);

// It has closed its socket without a word, or it does not move: it has died, or something foreign
// in it has, and it is of no use any more. Now it dies, unless its disk holds it.
void collector_process_kill(struct collector_process *collector_process);

// Close the socket and wait for its end; one that does not end in time is killed. One that not even
// that ends is left to the system. Accepts one that was closed.
void collector_process_close(struct collector_process *collector_process);
