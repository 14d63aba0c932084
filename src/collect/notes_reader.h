// notes_reader: reads lane 0 of an image, its notes: modules, forks, execs, marks, messages.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// From an exec to the new image's hello, on a machine with other things to do.
#define NOTES_READER_HELLO_NS UINT64_C(10000000000)

struct image;
struct stream;

// Read the notes up to `limit`. Definitions (modules) are made at once; what has a place in the
// order becomes a barrier of its lane.
void notes_reader_read(struct image *image, struct stream *notes, uint64_t limit);

// Tell of an exec into something that will not be seen, once that is sure. `over`: the process
// has ended, or the recording.
void notes_reader_check_exec(struct image *image, uint64_t now_ns, bool over);

// Tell of forked children that could not say hello. After the notes of the pass.
void notes_reader_check_children(struct image *image);

// The image is over: the user, and the trace, learn which allocators in its files are not seen.
void notes_reader_tell_hidden(struct image *image);
