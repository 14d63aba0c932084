// requests: what `tidemark ctl` asks of a recording, each until its place in the order has come.
//
//     requests_put      the door has heard one
//     requests_pass     all that was published before some have been asked is delivered
//     requests_fini     those that are left are refused: the recording has ended
//
// An answer goes back by the door: CONTROL_DONE, CONTROL_REFUSED with the reason, or
// CONTROL_UNKNOWN where the process is none of ours. A search for what is reachable is answered
// when it is done, which may be seconds later.
#pragma once

#include "collect/collect_types.h"
#include "collect/door.h"

struct overhead;
struct process_list;
struct reachability;

// All but the door's events is borrowed.
struct requests {
	const struct collect_options *options;
	struct door *door;
	struct process_list *process_list;
	struct reachability *reachability;
	struct overhead *overhead;
	void (*leave)(void *context); // the recording is to end, and the programs go on
	void *context;
	struct door_event *first; // owned, in the order in which they were heard
};

// Takes the event, which is one of DOOR_CONTROL.
void requests_put(struct requests *requests, struct door_event *event);

// Do what was asked up to `last_ns`.
void requests_pass(struct requests *requests, uint64_t last_ns);
void requests_fini(struct requests *requests);
