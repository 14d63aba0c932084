// collect: the other end of every lane; turns what traced processes publish into a trace.
//
// A collector is a process of its own. It listens on an abstract Unix socket, gives each process
// image that says hello a segment (wire/segment.h), drains the lanes of all images, merges them
// into one order (docs/notes/0001-order-without-clocks.md), interns stacks and feeds a writer.
//
//     door            answers hellos at once, in a thread of its own; also watches for deaths
//     control         what `tidemark ctl` asks from outside; requests keep it until its place
//     tick            the clock page: what guests need to keep it going by themselves, or a thread
//                     that writes it every 100 us where the processor's counter is of no use
//     session         what all guests share: the clock page, and the bell that wakes the collector
//     share, peer     a segment, mapped; the process at its other end
//     spares          segments for children that cannot say hello
//     process_list    all images, and those that said hello and have no place in the order yet
//     pending_exec    images that were announced and have not said hello
//     image           one process image: its lanes, ids, life and death
//     stream          what one lane has to deliver next
//     lane_reader     bytes of a lane -> items, or whole rows; lane_path and edit_cache -> stacks
//     slots, touched  which lanes have to wait for which
//     merge           items of all lanes of all images -> one order
//     before          what a process had when it was attached to, as items before its first
//     interner        (caller's stack, frame) -> stack id
//     language        native frames and those of an interpreted language -> one stack
//     frame_map       a guest's frame and module ids -> the trace's
//     generated_code  names of frames in no file, by code_lists and code_names
//     notes_reader    lane 0's notes; mappings, pools and file_table keep what they say
//     hidden_allocator  files with an allocator inside that nothing names
//     reachability    stops a process while it is found out which blocks are reachable
//     rss_snapshots   resident memory, by proc_memory; sampler measures now and then
//     overhead        what recording costs; turns to samples where that is too much, and back
//     trace_builder   counts, and writes the events
//     collect         the loop around them
//
// It ends when the launcher says that the main program has ended (or the launcher is gone) and no
// image is alive any more; when asked to stop; with `until_idle`, when all images are gone.
// Whatever was published by then is in the trace.
//
// When the trace cannot be written (no space left), it sets the clock to SEGMENT_CLOCK_STOP, upon
// which the traced programs go on unrecorded, ends the trace with the reason in it, tells the
// launcher, and refuses new images until the launcher has nothing more to run.
#pragma once

#include "collect/collect_types.h"

// Collect until the end. `summary` may be NULL. False when the collector could not start, or the
// trace could not be written whole: `err` says why.
bool collect_run(const struct collect_options *options, struct collect_summary *summary,
		 struct err *err);
