// vm_calls: what decides how address spaces look, as a list of its own: the calls on virtual memory
// of a trace, the beginnings and ends of its processes, and those calls on heaps that failed. A
// trace has few of them, so that they are gone through where the trace itself would take long.
//
//     vm_calls_put     each in its order; into a vault
//     vm_calls_next    each again, from what the vault has
//
// Some 25 bytes a call: numbers are written as differences to the call before, and only those that
// are not 0. So a writer or reader keeps what came last (struct vm_calls_last); a writer that goes
// on with a list has gone through it first.
#pragma once

#include "engine/index/vault.h"
#include "trace/reader.h"

enum vm_call_what {
	VM_CALL_EVENT, // `event`; its `vm` points at the call's
	VM_CALL_CLAIM, // a heap block at `event.address`, of `process`, was news to space_claim
	VM_CALL_NOTE,  // `note`: TRACE_NOTE_PROCESS_START or _END; its text is empty
};

struct vm_call {
	uint8_t what;    // enum vm_call_what
	uint64_t step;   // of the index, as pairing counts them (index_pair.h)
	uint64_t events; // of the trace before it
	process_id process;
	struct trace_event event;
	struct trace_vm vm;
	struct trace_note note;
};

enum { VM_CALLS_BYTES_MAX = 256 }; // of a call, and more

// `= { 0 }` is the beginning.
struct vm_calls_last {
	uint64_t step, events, time_ns, address;
};

// Append a call.
void vm_calls_put(struct vault *calls, struct vm_calls_last *last, const struct vm_call *call);

// The call at *at, which is moved on. False: there is none that is whole, or it cannot be one. Ids
// are held against nothing.
bool vm_calls_next(const uint8_t **at, const uint8_t *end, struct vm_calls_last *last,
		   struct vm_call *call);

// Whether thread, stack, heap and file of a call's event are such that the reader knows.
bool vm_calls_fit(const struct vm_call *call, const struct reader *reader);
