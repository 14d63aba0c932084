// invite: how guest and collector meet on Windows, where nobody can knock.
//
// A program that may open nothing by name (a sandboxed one) is to be recorded too. So it is not
// asked to: before it runs its first instruction, or when it is attached to, the host writes an
// *invitation* into its memory. That holds all that the guest needs, above all three handles that
// the host has duplicated into the program:
//
//     session   a section: the clock page (segment.h), and after it the visits (below)
//     segment   a section: the segment of this image
//     bell      an event: set, it wakes the collector
//
// The guest finds the invitation by its magic, which is what its region begins with, and says in
// `state` what became of it.
//
// Children: a guest does not invite anybody itself. It starts its child suspended and leaves a
// *visit* in the session: the child's handles, as they are in the asking process. The collector
// duplicates those out of it, makes a segment, invites the child, and answers.
//
// A child that the program itself wants suspended may be changed by it before it runs: its image
// may be replaced, and what was written there to bring us in goes with it. So the session counts
// those that wait, and while there are any, who lets a thread of another process run leaves a visit
// too. The collector looks whether the child will still load us, and else finds another way in.
//
// The segment's memory is reserved; who uses a part of it first commits it. The host commits all
// in front of the rings, and the guest each ring that it opens.
//
// Handles are numbers here: 32 bits of them mean something, for programs of either size.
//
// Freestanding: no libc call. Included by the recorder and by the host.
#pragma once

#include "wire/segment.h"

enum {
	INVITE_VERSION = 2,  // of the layout of both structs
	INVITE_BYTES = 4096, // of the region, at least
	INVITE_MAGIC_BYTES = 16,
	INVITE_SESSION_BYTES = 64 << 10, // of the section: clock page and visits
	INVITE_VISITS_AT = 4096,         // in the session
	INVITE_VISITS_MAX = 64,          // that may be under way at a time
	INVITE_WAITING_AT = 8192,        // in the session: _Atomic uint32_t, by the collector: how
					 // many invited children wait to be let run by programs
};

#define INVITE_MAGIC                                                                             \
	{                                                                                        \
		0x9f, 't', 'i', 'd', 'e', 'm', 'a', 'r', 'k', 0xb1, 0x5c, 0x0d, 0xe7, 0x33, 1, 0 \
	}

// How far the guest has come.
enum invite_state {
	INVITE_OPEN = 0,    // it has not looked yet
	INVITE_TAKEN = 1,   // the guest has found it
	INVITE_JOINED = 2,  // and records
	INVITE_REFUSED = 3, // and cannot: `reason`
};

// Why a guest cannot record.
enum invite_reason {
	INVITE_NO_MAPPING = 1, // a section could not be mapped
	INVITE_NO_CODE = 2,    // memory for code is refused: the process forbids dynamic code
};

// The invitation, at the beginning of a region of its own. The host writes it; what the guest
// writes is said.
struct invite {
	uint8_t magic[INVITE_MAGIC_BYTES];
	uint32_t version;
	uint32_t image;   // id of this process image, from 1
	uint32_t options; // enum segment_option
	uint32_t collector_pid;
	_Atomic uint32_t state;          // enum invite_state, by the guest
	_Atomic uint32_t reason;         // enum invite_reason, by the guest
	uint32_t session, segment, bell; // handles in the program
	uint32_t late;                   // 1: the program was running already
	_Alignas(8) uint64_t segment_bytes;

	// Where the image's headers were changed to load us, and what stood there: the guest puts
	// it back. 0: nowhere.
	uint64_t import_at; // address of the directory's entry of imports
	uint64_t bound_at;  // and of bound imports
	uint32_t import_was[2], bound_was[2];
};

// Who may write a visit now: it goes round, FREE, HELD, ASKED (guest), TAKEN, DONE (collector),
// FREE (guest). A guest that has waited too long takes back what is ASKED, and leaves what is TAKEN
// to the collector, which frees it then.
enum visit_state {
	VISIT_FREE = 0,  // any guest may take it
	VISIT_HELD = 1,  // a guest is writing it
	VISIT_ASKED = 2, // it is written; the bell is rung next
	VISIT_DONE = 3,  // answered; the guest frees it
	VISIT_TAKEN = 4, // the collector is at it
	VISIT_LEFT = 5,  // and nobody waits for the answer any more
};

// What a visit asks for.
enum visit_kind {
	VISIT_BEGINS = 0,  // a child to be invited, which the guest lets run then
	VISIT_WAITS = 1,   // the same, but the program will let it run
	VISIT_RESUMES = 2, // a child that waits is about to run: `pid`, or 0: any
	VISIT_COPIED = 3,  // nothing: the child is a copy of the program (a fork), and not recorded
};

// One request, in the session. The guest waits for the answer, though not for ever, before it lets
// the child run.
struct visit {
	_Atomic uint32_t state;   // enum visit_state
	uint32_t image;           // who asks
	uint32_t pid;             // the child's; 0: the collector knows it by the handle
	uint32_t answer;          // 0: it will be recorded
	uint32_t process, thread; // handles, in the asking process
	uint32_t kind;            // enum visit_kind
	uint32_t reserved;
};

_Static_assert(sizeof(struct invite) <= INVITE_BYTES, "an invitation fits its region");
_Static_assert(sizeof(struct visit) == 32, "the same for programs of either size");
_Static_assert(sizeof(struct segment_clock) <= INVITE_VISITS_AT, "visits come after the clock");
_Static_assert(INVITE_VISITS_AT + INVITE_VISITS_MAX * sizeof(struct visit) <= INVITE_WAITING_AT,
	       "and end before the count");
