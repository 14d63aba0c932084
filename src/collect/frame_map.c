// For example, a process has used its frame numbers 1 to 99, and forks. The child's hello says
// frames_count 100: its own segment begins with frame 100, and numbers below are its parent's. So
// frame_map_inherit looks all of 1 to 99 up in the parent's map, and copies the trace's ids. If the
// parent is gone (its map was freed), ids stay 0, and each of these frames becomes the one frame
// that is unknown; the child's own are known as ever.
//
// A number that the guest has not published is damage: frame_map_find says 0, and the lane is given
// up.
#include "collect/frame_map.h"

#include "base/mem.h"
#include "collect/language.h"

#include <string.h>

void frame_map_init(struct frame_map *map, struct writer *writer, const struct segment *segment,
		    const struct segment_frame *frames)
{
	memset(map, 0, sizeof *map);
	map->writer = writer;
	map->segment = segment;
	map->frames = frames;
}

void frame_map_fini(struct frame_map *map)
{
	MEM_FREE(map->ids, map->modules, map->loose);
	for (size_t i = 0; i < map->codes_count; i++) {
		MEM_FREE(map->codes[i].function, map->codes[i].file);
	}
	mem_free(map->codes);
	memset(map, 0, sizeof *map);
}

// One for each image: frame 0 of module 0, which is shown as unknown.
static frame_id unknown_frame(struct frame_map *map)
{
	if (map->unknown == 0)
		map->unknown = writer_add_frame(map->writer, 0, 0, 0);
	return map->unknown;
}

// Frames that the guest has published so far.
static uint32_t published_count(const struct frame_map *map)
{
	uint32_t count;

	if (map->segment == NULL)
		return 0;
	count = atomic_load_explicit(&map->segment->frames_count, memory_order_acquire);
	return count < SEGMENT_FRAMES_MAX ? count : SEGMENT_FRAMES_MAX;
}

// A frame in no module, generated code: it is named at the end, by what the runtime wrote
// (generated_code.h). When it was first seen is kept, as addresses are used again.
static void add_loose(struct frame_map *map, uint64_t pc, frame_id frame)
{
	*MEM_ADD(map->loose, map->loose_count, map->loose_capacity) = (struct frame_map_loose){
		.pc = pc,
		.seen_ns = map->now_ns != NULL ? *map->now_ns : 0,
		.frame = frame,
	};
}

// A line of a program that is interpreted.
//
// The upper half of its address is the number of a code object, the lower half a line.
static frame_id add_source(struct frame_map *map, uint32_t id, uint64_t pc)
{
	uint32_t number = (uint32_t)(pc >> 32);
	const struct code_name *code = number < map->codes_count ? &map->codes[number] : NULL;
	bool known = code != NULL && code->function != NULL;
	struct trace_name name = {
		.function = known ? code->function : "",
		.file = known ? code->file : "",
		.line = (uint32_t)pc,
	};

	(void)MEM_REACH(map->ids, map->ids_capacity, id);
	if (known && map->code != NULL) {
		map->ids[id] = code_table_line(map->code, name.function, name.file, name.line);
		return map->ids[id];
	}
	map->ids[id] = writer_add_frame(map->writer, 0, pc, TRACE_FRAME_SOURCE);
	writer_add_name(map->writer, map->ids[id], &name, 1);
	return map->ids[id];
}

// A native frame may be the interpreter's.
//
// For putting a language's frames into native stacks: which frames are the interpreter's own.
static uint8_t marks_of(const struct frame_map *map, const struct segment_frame *frame)
{
	module_id module = frame_map_module(map, frame->module);

	bool own = module != 0 && (module == map->interpreter || module == map->recorder);

	return (own ? LANGUAGE_INTERPRETER : 0) |
	       (module == 0 && map->interpreter ? LANGUAGE_GENERATED : 0) |
	       (frame->flags & SEGMENT_FRAME_EVALUATOR ? LANGUAGE_EVALUATOR : 0);
}

// A frame of a file is the same in each image to which it has the same marks; what is in no file is
// an image's own.
static frame_id add_native(struct frame_map *map, const struct segment_frame *frame, uint32_t flags,
			   uint8_t marks)
{
	const struct frame_map_module *module =
		frame_map_module(map, frame->module) != 0 ? &map->modules[frame->module] : NULL;

	if (module == NULL || map->code == NULL)
		return writer_add_frame(map->writer, module ? module->id : 0, frame->pc, flags);
	return code_table_frame(map->code, module->file, frame->pc - module->bias, flags, marks);
}

// Frame numbers of the segment become ids of the trace, once each; a module's id is looked up at
// that time.
frame_id frame_map_find(struct frame_map *map, uint32_t id)
{
	struct segment_frame frame;
	uint32_t flags = 0;
	uint8_t marks;

	if (id < map->ids_capacity && map->ids[id] != 0)
		return map->ids[id];
	if (id == 0 || id < map->inherited)
		return unknown_frame(map);
	if (id >= published_count(map))
		return 0;
	memcpy(&frame, &map->frames[id], sizeof frame);
	if (frame.flags & SEGMENT_FRAME_PYTHON)
		return add_source(map, id, frame.pc);
	if (frame.flags & SEGMENT_FRAME_EXACT_PC)
		flags |= TRACE_FRAME_EXACT_PC;
	(void)MEM_REACH(map->ids, map->ids_capacity, id);
	marks = map->language != NULL ? marks_of(map, &frame) : 0;
	map->ids[id] = add_native(map, &frame, flags, marks);
	ASSERT(map->ids[id] != 0); // so it is not looked up again
	if (map->language != NULL)
		language_mark(map->language, map->ids[id], marks);
	if (frame_map_module(map, frame.module) == 0)
		add_loose(map, frame.pc, map->ids[id]);
	return map->ids[id];
}

static void put_module(struct frame_map *map, uint32_t id, struct frame_map_module module)
{
	size_t before = map->modules_count;

	// Ids come in order; a guest that jumps is not believed beyond what a process can map.
	if (id == 0 || id > before + 65536)
		return;
	if (id >= before) {
		(void)MEM_REACH(map->modules, map->modules_capacity, id);
		map->modules_count = (size_t)id + 1;
	}
	ASSERT(id < map->modules_count && map->modules_count <= map->modules_capacity);
	map->modules[id] = module;
}

void frame_map_add_module(struct frame_map *map, uint32_t id, const struct trace_module *module)
{
	put_module(map, id,
		   (struct frame_map_module){
			   .id = module->id,
			   .file = map->code != NULL ? code_table_file(map->code, module) : 0,
			   .bias = module->bias,
		   });
}

void frame_map_add_code(struct frame_map *map, uint32_t number, char *function, char *file)
{
	size_t before = map->codes_count;

	// Numbers rise one by one, in a forked child from where its parent was.
	if (number < before || (before > 0 && number > before + 65536)) {
		MEM_FREE(function, file);
		return;
	}
	*MEM_REACH(map->codes, map->codes_capacity, number) = (struct code_name){ function, file };
	map->codes_count = (size_t)number + 1;
}

module_id frame_map_module(const struct frame_map *map, uint32_t id)
{
	return id < map->modules_count ? map->modules[id].id : 0;
}

// `modules_count` and `frames_count` are what the parent had at the fork, by the child's own word,
// and so bounded by what there is.
void frame_map_inherit(struct frame_map *map, struct frame_map *parent, uint32_t frames_count,
		       uint32_t modules_count)
{
	if (frames_count > SEGMENT_FRAMES_MAX)
		frames_count = SEGMENT_FRAMES_MAX;
	map->inherited = frames_count;
	if (parent == NULL)
		return;
	map->interpreter = parent->interpreter;
	map->recorder = parent->recorder;
	for (uint32_t id = 1; id < frames_count; id++)
		if (frame_map_get(parent, id) == 0)
			break;
	if (frames_count > parent->ids_capacity)
		frames_count = (uint32_t)parent->ids_capacity;
	if (frames_count > 0) {
		(void)MEM_REACH(map->ids, map->ids_capacity, frames_count - 1);
		memcpy(map->ids, parent->ids, frames_count * sizeof *map->ids);
	}
	for (uint32_t id = 1; id < modules_count && id < parent->modules_count; id++)
		put_module(map, id, parent->modules[id]);
}

// All frames are looked up that children may inherit, before the segment is unmapped.
void frame_map_detach(struct frame_map *map)
{
	uint32_t count = published_count(map);

	for (uint32_t id = 1; id < count; id++)
		frame_map_get(map, id);
	map->segment = NULL;
	map->frames = NULL;
}

void frame_map_move(struct frame_map *map, const struct segment *segment,
		    const struct segment_frame *frames)
{
	ASSERT(map->segment != NULL && segment != NULL);
	map->segment = segment;
	map->frames = frames;
}
