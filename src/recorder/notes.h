// notes: what the process tells the collector besides its memory calls, in lane 0.
//
// Any thread may write, under a lock; all of it is on slow paths. Signals must be blocked by the
// caller. docs in wire/lane_event.h.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// A file is mapped at [start, end).
HIDDEN void notes_module(uint32_t id, uint64_t start, uint64_t end, uint64_t bias,
			 const uint8_t *build_id, uint32_t build_id_length, const char *path);

// The module was unmapped.
HIDDEN void notes_module_gone(uint32_t id);

// An interpreter was found in that module; 0: its frames are not read; NOTE_LANGUAGE_NAMED: nor are
// those of any other of its kind.
HIDDEN void notes_language(uint32_t module, const char *name, const char *version);

// A function of Python that frames speak of.
HIDDEN void notes_code(uint32_t number, const char *name, const char *file);

// A new image that will not be recorded: reason is enum note_exec.
HIDDEN void notes_exec(uint32_t reason, const char *path);

// That exec came back.
HIDDEN void notes_exec_failed(uint32_t error);

// This thread is about to fork; what it did in `lane` up to `head` is before that.
HIDDEN void notes_fork(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head);

// The last fork that this thread spoke of made no child.
HIDDEN void notes_fork_failed(uint32_t tid);

// This moment of thread `tid`, which has written `lane` up to `head` (0: it has none), is called
// by the name. Likewise: from here on allocations are not recorded, or are again.
HIDDEN void notes_mark(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head,
		       const char *name, uint32_t length);
HIDDEN void notes_pause(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, bool paused);

// At this moment the thread knows that process `pid` has ended, with that status of wait's.
HIDDEN void notes_waited(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, uint32_t pid,
			 uint32_t status);

// There is a pool `id`, from 1 on.
HIDDEN void notes_pool(uint32_t id, const char *name, uint32_t length);

// A mapped file, and a part of the list of all mappings.
HIDDEN void notes_file(uint32_t id, uint64_t device, uint64_t inode, const char *path);
HIDDEN void notes_maps(uint32_t list, const char *text);

// How this process's calls on virtual memory are seen (enum note_calls), and why not otherwise.
HIDDEN void notes_calls(uint32_t how, const char *why);

// It uses this allocator, whose calls are seen so (enum note_seen). `path` may be empty.
HIDDEN void notes_allocator(uint32_t seen, const char *name, const char *path);

// The addresses that this process may have, where the collector cannot tell: from `low` to `end`.
HIDDEN void notes_space(uint64_t low, uint64_t end);

// Something the user should know (enum note_message).
HIDDEN void notes_message(uint32_t message, const char *text);
