// frame_map: a guest's numbers for frames and modules, as the trace's.
//
// A guest numbers its frames and modules from 1, densely, in its segment; the trace numbers those
// of all images together. A frame is looked up when the first stack uses it. A forked child goes
// on with the parent's numbers up to where the parent was: frame_map_inherit. What is in a file
// that another image has as well is one frame of the trace: code_table.h.
//
// Guests can be corrupted: ids are checked, and a frame of an unknown module is one of none.
#pragma once

#include "collect/code_table.h"
#include "trace/trace.h"
#include "trace/writer.h"
#include "wire/segment.h"

#include <stddef.h>

struct language;

// A function of a language that is interpreted. Both are ours.
struct code_name {
	char *function; // NULL: not known
	char *file;
};

// A frame in no file: of generated code, which only the program itself can name.
struct frame_map_loose {
	uint64_t pc;
	uint64_t seen_ns; // when it was used first
	frame_id frame;
};

// A module of the guest.
struct frame_map_module {
	module_id id;  // the trace's; 0: none
	uint32_t file; // code_table_file
	uint64_t bias;
};

struct frame_map {
	struct writer *writer;         // borrowed; gets each frame once, when it is first used
	const struct segment *segment; // borrowed from the image's share; NULL: none (any more)
	const struct segment_frame *frames; // the same
	frame_id *ids;                      // by the guest's id; 0: not yet
	size_t ids_capacity;
	struct code_table *code;   // borrowed; NULL: each frame is the image's own
	struct language *language; // borrowed; NULL: none
	module_id interpreter;     // 0: none
	module_id recorder;        // our library, by which an interpreter asks for memory; 0: none
	struct code_name *codes;   // functions of the language, by the guest's number
	size_t codes_count, codes_capacity;
	uint32_t tag;           // of the image in edit_cache.h; 0: none
	uint32_t inherited;     // ids below are the parent's, whatever the segment holds
	frame_id unknown;       // what the guest's frame 0 became; 0: not used yet
	const uint64_t *now_ns; // borrowed: the time of what is being decoded; NULL: not known
	struct frame_map_loose *loose;
	size_t loose_count, loose_capacity;
	size_t loose_named, loose_unsure; // those that have a name now, and of these not surely
	struct frame_map_module *modules; // by the guest's id
	size_t modules_count, modules_capacity;
};

// Borrows all three until frame_map_fini, or frame_map_detach for the latter two.
void frame_map_init(struct frame_map *map, struct writer *writer, const struct segment *segment,
		    const struct segment_frame *frames);
void frame_map_fini(struct frame_map *map); // accepts { 0 }

// The trace's id of the guest's frame `id`; 0 if there is no such frame. Reads the segment, and
// writes the frame into the trace, at the first time. Frames that are the parent's and came to
// nothing, and frame 0, are one frame of unknown place.
frame_id frame_map_find(struct frame_map *map, uint32_t id);

// The guest's module `id` is `module`, which is in the trace. Ids come in order: 0, and one more
// than 65,536 above those that are known, are left out as damage.
void frame_map_add_module(struct frame_map *map, uint32_t id, const struct trace_module *module);

// The guest's function `number` of an interpreted language; both texts are taken.
void frame_map_add_code(struct frame_map *map, uint32_t number, char *function, char *file);

// 0 if there is no such module. Also of one that was left out, or that the trace has not been given
// yet.
module_id frame_map_module(const struct frame_map *map, uint32_t id);

// Take over the parent's frames below `frames_count` and modules below `modules_count`. `parent`
// may be NULL (it is gone): those frames are then unknown.
void frame_map_inherit(struct frame_map *map, struct frame_map *parent, uint32_t frames_count,
		       uint32_t modules_count);

// The segment goes away; what was looked up stays, and so does what a child may still inherit.
void frame_map_detach(struct frame_map *map);

// The segment is at another place from here on.
void frame_map_move(struct frame_map *map, const struct segment *segment,
		    const struct segment_frame *frames);

// As frame_map_find; without a call where the frame was met before.
static inline frame_id frame_map_get(struct frame_map *map, uint32_t id)
{
	frame_id found = id < map->ids_capacity ? map->ids[id] : 0;

	return found != 0 ? found : frame_map_find(map, id);
}
