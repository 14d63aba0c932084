// When an image is over, or is marked from outside, the frames of its stacks that are in no file
// are looked for in the lists that its runtime has written: the jitdump first, which has times,
// then the perf map with what is left. For example, 120 frames, of which the jitdump names 100 and
// the map 15: the trace gets 115 names, and a message that says "115 of 120 addresses of generated
// code have the names that it wrote for perf". What has no name at a mark is looked for again.
#include "collect/generated_code.h"

#include "base/mem.h"
#include "collect/code_names.h"
#include "collect/image.h"

// One image's frames, while they are named.
struct naming {
	struct image *image;
	struct code_wanted *wanted;
	size_t count;
	bool last; // what is not named now will not be, and is told
};

static void naming_tell(const struct naming *naming, const struct str *line)
{
	trace_builder_note(naming->image->trace_builder, TRACE_NOTE_MESSAGE, naming->image->process,
			   TRACE_NONE, 0, str_get(line));
}

// Those that have a name are told, and taken out.
static void naming_put(struct naming *naming)
{
	struct writer *writer = naming->image->trace_builder->writer;
	struct trace_name name;
	size_t left = 0;

	for (size_t i = 0; i < naming->count; i++) {
		struct code_wanted *wanted = &naming->wanted[i];

		if (wanted->length == 0) {
			naming->wanted[left++] = *wanted;
			continue;
		}
		code_names_split(wanted, &name);
		writer_add_name(writer, wanted->frame, &name, 1);
		MEM_FREE(name.function, name.file);
		naming->image->frames.loose_named++;
		naming->image->frames.loose_unsure += wanted->several;
	}
	ASSERT(left <= naming->count);
	naming->count = left;
}

// Each list may name some. What is wrong with a list is told at the last look alone: at a mark it
// may only not be written to its end yet.
static void naming_read(struct naming *naming, enum code_lists_kind kind)
{
	const char *what = kind == CODE_LISTS_DUMP ? "jitdump" : "perf map";
	struct image *image = naming->image;
	struct str why = { 0 }, line = { 0 };
	bool all = true;
	size_t length;
	char *bytes =
		code_lists_read(&image->code_lists, kind, image->arrival->hello.pid, &length, &why);

	if (bytes != NULL && kind == CODE_LISTS_DUMP)
		all = code_names_find_in_dump(naming->wanted, naming->count, (const uint8_t *)bytes,
					      length);
	else if (bytes != NULL)
		all = code_names_find_in_map(naming->wanted, naming->count, bytes, length);
	if (!all)
		str_add(&why, "its functions overlap too much");
	if (why.length > 0 && naming->last) {
		str_format(&line, "its %s, which names generated code, is not read%s: %s", what,
			   bytes != NULL ? " to the end" : "", str_get(&why));
		naming_tell(naming, &line);
	}
	naming_put(naming);
	mem_free(bytes);
	STR_FINI(&why, &line);
}

// Times of the image are since the recording began, those of a jitdump are the system's clock:
// began_ns is between them.
static void naming_begin(struct naming *naming, uint64_t began_ns)
{
	const struct frame_map *frames = &naming->image->frames;

	naming->count = frames->loose_count;
	naming->wanted = mem_alloc(naming->count, sizeof *naming->wanted);
	for (size_t i = 0; i < naming->count; i++) {
		const struct frame_map_loose *loose = &frames->loose[i];

		naming->wanted[i] = (struct code_wanted){
			.pc = loose->pc,
			.seen_ns = began_ns + loose->seen_ns,
			.frame = loose->frame,
		};
	}
}

// Those without a name stay.
static void naming_end(struct naming *naming, uint64_t began_ns)
{
	struct frame_map *frames = &naming->image->frames;

	ASSERT(naming->count <= frames->loose_count);
	for (size_t i = 0; i < naming->count; i++)
		frames->loose[i] = (struct frame_map_loose){
			.pc = naming->wanted[i].pc,
			.seen_ns = naming->wanted[i].seen_ns - began_ns,
			.frame = naming->wanted[i].frame,
		};
	frames->loose_count = naming->count;
	mem_free(naming->wanted);
}

static void naming_tell_count(const struct naming *naming)
{
	const struct frame_map *frames = &naming->image->frames;
	struct str line = { 0 };

	if (frames->loose_named == 0 || (frames->loose_unsure == 0 && naming->count == 0))
		return;
	str_format(&line,
		   "%zu of %zu addresses of generated code have the names that it wrote for perf",
		   frames->loose_named, frames->loose_named + naming->count);
	if (frames->loose_unsure > 0)
		str_format(&line, "; %zu of them were of several functions one after the other",
			   frames->loose_unsure);
	naming_tell(naming, &line);
	str_fini(&line);
}

void generated_code_name(struct image *image, uint64_t began_ns, bool last)
{
	struct naming naming = { .image = image, .last = last };

	if (image->frames.loose_count > 0) {
		naming_begin(&naming, began_ns);
		naming_read(&naming, CODE_LISTS_DUMP);
		naming_read(&naming, CODE_LISTS_MAP);
		naming_end(&naming, began_ns);
	}
	if (last)
		naming_tell_count(&naming);
}
