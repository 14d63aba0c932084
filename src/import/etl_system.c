// A pid is used again, and so is an address. So each process knows the one before it with its pid,
// and the latest is found by the pid: for example, pid 4242 from 1 s to 3 s and again from 7 s on.
// Asked at 8 s the latest began before that; asked at 2 s it did not, and the one before it did.
// Asked at 5 s, when there was none, it is the one that began next: its first events may come
// before the event that says that it began.
//
// Images of a process are sorted when the log has been read; one is found by its base at or before
// the address and by its time, looking back over those that may lie over it.
#include "import/etl_system.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/utf8.h"
#include "trace/bytes.h"

#include <stdlib.h>
#include <strings.h>

enum {
	PROCESS_START = 1,
	PROCESS_END = 2,
	PROCESS_WAS_THERE = 3,
	PROCESS_IS_THERE = 4,
	IMAGE_LOAD = 10,
	IMAGE_UNLOAD = 2,
	IMAGE_WAS_THERE = 3,
	IMAGE_IS_THERE = 4,
	IMAGE_RSDS = 36,
	GUID_BYTES = 16,
	PDB_NAME_MAX = 12, // of one that is not the image's own: docs/format.md, 5.4
	LOOK_BACK = 64,    // images that may lie over another's beginning
};

struct rsds {
	uint32_t pid;
	uint64_t base, time;
	uint8_t id[GUID_BYTES + 4];
	char *pdb;
};

struct etl_system {
	struct etl_process *processes;
	size_t processes_count, processes_capacity;
	uint32_t *before; // a process: the one before it with its pid, + 1
	size_t before_capacity;
	struct map by_pid; // the last process of a pid, + 1
	struct etl_image *images;
	size_t images_count, images_capacity;
	struct map open; // base and pid, hashed: an image that is loaded, + 1
	struct rsds *rsds;
	size_t rsds_count, rsds_capacity;
};

struct etl_system *etl_system_new(void)
{
	return mem_alloc(1, sizeof(struct etl_system));
}

void etl_system_free(struct etl_system *system)
{
	if (!system)
		return;
	for (size_t i = 0; i < system->processes_count; i++) {
		MEM_FREE(system->processes[i].name, system->processes[i].command);
	}
	for (size_t i = 0; i < system->images_count; i++)
		mem_free(system->images[i].path);
	for (size_t i = 0; i < system->rsds_count; i++)
		mem_free(system->rsds[i].pdb);
	MEM_FREE(system->processes, system->before, system->images, system->rsds);
	MAP_FINI(&system->by_pid, &system->open);
	mem_free(system);
}

// ---- fields ----

// 4 or 8 bytes; 0 and a bad cursor where they are not there.
static uint64_t take(struct bytes_cursor *cursor, unsigned bytes)
{
	const uint8_t *at = bytes_next_raw(cursor, bytes);

	return !at ? 0 : bytes == 8 ? bytes_get_u64(at) : bytes_get_u32(at);
}

static void add_utf8(struct str *text, uint32_t c)
{
	char bytes[UTF8_BYTES_MAX];

	str_add_bytes(text, bytes, (size_t)(utf8_put(bytes, c) - bytes));
}

// A text of UTF-16 up to its end or that of the event; owned by the caller. Half a surrogate pair
// is U+FFFD, as decoders of UTF-16 make it.
static char *take_wide(struct bytes_cursor *cursor)
{
	struct str text = { 0 };
	uint32_t c, low;

	while (bytes_left(cursor) >= 2) {
		c = bytes_get_u16(cursor->at);
		cursor->at += 2;
		if (c == 0)
			break;
		low = bytes_left(cursor) >= 2 ? bytes_get_u16(cursor->at) : 0;
		if (c >= 0xd800 && c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			cursor->at += 2;
		} else if (c >= 0xd800 && c < 0xe000) {
			c = 0xfffd;
		}
		add_utf8(&text, c);
	}
	return text.text ? str_take(&text) : mem_copy_text("");
}

// A text of bytes up to its NUL or the end of the event; owned by the caller.
static char *take_narrow(struct bytes_cursor *cursor)
{
	size_t length = strnlen((const char *)cursor->at, bytes_left(cursor));
	char *text = mem_copy_bytes(cursor->at, length);

	cursor->at += length + (length < bytes_left(cursor));
	return text;
}

// Whose the process is: no user's (a word of 0), or two pointers and a security identifier, which
// has a byte that says how many words of 4 bytes follow its first 8. It is stepped over for the
// name that comes after it.
static void skip_sid(struct bytes_cursor *cursor, unsigned pointer)
{
	const uint8_t *sid;

	if (bytes_left(cursor) < 4 || bytes_get_u32(cursor->at) == 0) {
		bytes_next_raw(cursor, 4);
		return;
	}
	bytes_next_raw(cursor, 2 * pointer);
	sid = bytes_next_raw(cursor, 8);
	if (sid)
		bytes_next_raw(cursor, 4u * sid[1]);
}

// ---- processes ----

// The list of a pid goes from the latest to the first, as most questions are of late times.
static uint32_t add_process(struct etl_system *system, const struct etl_process *process)
{
	uint32_t number = (uint32_t)system->processes_count;
	uint64_t *last = map_put(&system->by_pid, process->pid, NULL);

	MEM_ROOM(system->processes, system->processes_capacity, number + 1);
	MEM_ROOM(system->before, system->before_capacity, number + 1);
	ASSERT(*last <= number);
	system->processes[number] = *process;
	system->before[number] = (uint32_t)*last;
	*last = number + 1;
	system->processes_count++;
	return number;
}

static struct etl_process *last_process(const struct etl_system *system, uint32_t pid)
{
	uint64_t *last = map_find(&system->by_pid, pid);

	return last ? &system->processes[*last - 1] : NULL;
}

// Fields were added from version to version; those before them keep their places.
static struct etl_process read_process(const struct etl_event *event)
{
	struct bytes_cursor cursor = bytes_cursor(event->data, event->size);
	unsigned pointer = event->pointer_bytes;
	struct etl_process process = { .ended = UINT64_MAX };

	if (event->version >= 1)
		take(&cursor, pointer); // a key, or its page directory
	process.pid = (uint32_t)take(&cursor, 4);
	process.parent = (uint32_t)take(&cursor, 4);
	if (event->version >= 1) {
		take(&cursor, 4); // session
		process.exit = (int32_t)take(&cursor, 4);
	}
	if (event->version >= 3)
		take(&cursor, pointer);
	if (event->version >= 4)
		take(&cursor, 4);
	skip_sid(&cursor, pointer);
	process.name = take_narrow(&cursor);
	process.command = event->version >= 2 ? take_wide(&cursor) : mem_copy_text("");
	return process;
}

// "Was there" and "is there" are said of every process when the log begins and ends: they make a
// process only where none is known that still runs. The end of one that never began in the log
// began before it.
static void add_process_event(struct etl_system *system, const struct etl_event *event)
{
	struct etl_process process, *last;

	if (event->opcode < PROCESS_START || event->opcode > PROCESS_IS_THERE)
		return;
	process = read_process(event);
	last = last_process(system, process.pid);
	if (event->opcode == PROCESS_START) {
		process.began = event->time;
		add_process(system, &process);
		return;
	}
	if (!last || last->ended != UINT64_MAX) {
		add_process(system, &process);
		last = last_process(system, process.pid);
	} else {
		MEM_FREE(process.name, process.command);
	}
	if (event->opcode == PROCESS_END) {
		last->ended = event->time;
		last->exit = process.exit;
	}
}

// Never fails: events of a process that the log does not describe have one without a name. Of those
// with the pid the latest that ran at the time; else the latest that began before it, if none began
// after it; else the one that began next.
uint32_t etl_system_find(struct etl_system *system, uint32_t pid, uint64_t time)
{
	const uint64_t *last = map_find(&system->by_pid, pid);
	uint32_t nearest = UINT32_MAX;

	for (uint32_t at = last ? (uint32_t)*last : 0; at; at = system->before[at - 1]) {
		const struct etl_process *process = &system->processes[at - 1];

		if (process->began <= time && (time <= process->ended || nearest == UINT32_MAX))
			return at - 1;
		if (process->began <= time)
			break;
		nearest = at - 1;
	}
	if (nearest != UINT32_MAX)
		return nearest;
	return add_process(system, &(struct etl_process){ .pid = pid,
							  .ended = UINT64_MAX,
							  .name = mem_copy_text(""),
							  .command = mem_copy_text("") });
}

const struct etl_process *etl_system_process(const struct etl_system *system, uint32_t number)
{
	ASSERT(number < system->processes_count);
	return &system->processes[number];
}

uint32_t etl_system_processes(const struct etl_system *system)
{
	return (uint32_t)system->processes_count;
}

// ---- images ----

// An image whose event is too short is empty, and then left out.
static struct etl_image read_image(const struct etl_event *event)
{
	struct bytes_cursor cursor = bytes_cursor(event->data, event->size);
	unsigned pointer = event->pointer_bytes;
	struct etl_image image = { .unloaded = UINT64_MAX };
	uint64_t size;

	image.start = take(&cursor, pointer);
	size = take(&cursor, event->version >= 1 ? pointer : 4);
	image.end = image.start + size < image.start ? UINT64_MAX : image.start + size;
	image.pid = event->version >= 1 ? (uint32_t)take(&cursor, 4) : event->process;
	if (event->version >= 2) {
		take(&cursor, 4); // checksum
		image.linked = (uint32_t)take(&cursor, 4);
		take(&cursor, 4);
		take(&cursor, pointer); // the base it was linked for
		bytes_next_raw(&cursor, 16);
	}
	if (cursor.bad)
		image.end = image.start;
	image.path = take_wide(&cursor);
	return image;
}

// Where one is loaded over another that is still there, that one was unloaded unseen. The hash of
// base and pid may be that of another image: its base is compared.
static void add_image_event(struct etl_system *system, const struct etl_event *event)
{
	struct etl_image image;
	uint64_t *open;
	bool known, here;

	if (event->opcode < IMAGE_UNLOAD ||
	    (event->opcode > IMAGE_IS_THERE && event->opcode != IMAGE_LOAD))
		return;
	image = read_image(event);
	open = map_put(&system->open, (image.start * UINT64_C(0x9e3779b97f4a7c15)) ^ image.pid,
		       NULL);
	known = *open && system->images[*open - 1].unloaded == UINT64_MAX &&
		system->images[*open - 1].start == image.start;
	here = event->opcode == IMAGE_LOAD;
	if (known && here)
		system->images[*open - 1].unloaded = event->time;
	if (event->opcode == IMAGE_UNLOAD && known)
		system->images[*open - 1].unloaded = event->time;
	if ((known && !here) || image.end == image.start) {
		mem_free(image.path);
		return;
	}
	image.loaded = here ? event->time : 0;
	if (event->opcode == IMAGE_UNLOAD)
		image.unloaded = event->time;
	*MEM_ADD(system->images, system->images_count, system->images_capacity) = image;
	*open = system->images_count;
}

// RSDS is the record of an image that names its PDB: a GUID, an age and a path.
static void add_rsds(struct etl_system *system, const struct etl_event *event)
{
	struct bytes_cursor cursor = bytes_cursor(event->data, event->size);
	struct rsds rsds = { .time = event->time };
	const uint8_t *id;

	if (event->opcode != IMAGE_RSDS)
		return;
	rsds.base = take(&cursor, event->pointer_bytes);
	rsds.pid = (uint32_t)take(&cursor, 4);
	id = bytes_next_raw(&cursor, sizeof rsds.id);
	if (!id)
		return;
	memcpy(rsds.id, id, sizeof rsds.id);
	rsds.pdb = take_narrow(&cursor);
	*MEM_ADD(system->rsds, system->rsds_count, system->rsds_capacity) = rsds;
}

void etl_system_add(struct etl_system *system, const struct etl_event *event)
{
	if (event->group == ETL_PROCESS && event->opcode == IMAGE_LOAD)
		add_image_event(system, event);
	else if (event->group == ETL_PROCESS)
		add_process_event(system, event);
	else if (event->group == ETL_IMAGE)
		add_image_event(system, event);
	else if (event->group == ETL_IMAGE_ID)
		add_rsds(system, event);
}

// ---- what belongs together ----

SORT_ORDER(compare_images, struct etl_image, SORT_RISES(pid), SORT_RISES(start), SORT_RISES(loaded))

// The first image of the pid that begins behind the address.
static size_t images_behind(const struct etl_system *system, uint32_t pid, uint64_t address)
{
	size_t low = 0, high = system->images_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct etl_image *image = &system->images[middle];

		if (image->pid < pid || (image->pid == pid && image->start <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Whether the PDB's name is the image's with another ending.
static bool is_own_pdb(const char *image, const char *pdb)
{
	const char *ending = strrchr(image, '.');
	size_t length = ending ? (size_t)(ending - image) : strlen(image);

	return strncasecmp(image, pdb, length) == 0 && strcasecmp(pdb + length, ".pdb") == 0;
}

// The name of the PDB is part of the id only where it is not the image's own, as docs/format.md has
// it.
static void give_id(struct etl_image *image, const struct rsds *rsds)
{
	const char *pdb = str_last_part_of_any(rsds->pdb);
	size_t length = strlen(pdb);

	memcpy(image->build_id, rsds->id, sizeof rsds->id);
	image->build_id_length = sizeof rsds->id;
	if (length <= PDB_NAME_MAX && !is_own_pdb(str_last_part_of_any(image->path), pdb)) {
		memcpy(image->build_id + sizeof rsds->id, pdb, length);
		ASSERT(sizeof rsds->id + length <= sizeof image->build_id);
		image->build_id_length += (uint8_t)length;
	}
}

// An identity belongs to the image that was at its base at its time; it may be told a moment before
// the image itself, or at the log's end. Among images with that base the latest that was loaded by
// then; else the first one after it. One that has an identity already is passed over.
static void settle_rsds(struct etl_system *system, const struct rsds *rsds)
{
	size_t at = images_behind(system, rsds->pid, rsds->base);
	struct etl_image *best = NULL;

	ASSERT(at <= system->images_count);
	while (at > 0 && system->images[at - 1].pid == rsds->pid &&
	       system->images[at - 1].start == rsds->base) {
		struct etl_image *image = &system->images[--at];

		if (!best || best->build_id_length || rsds->time < best->loaded)
			best = image;
		if (!best->build_id_length && best->loaded <= rsds->time)
			break;
	}
	if (best && !best->build_id_length)
		give_id(best, rsds);
}

// Two images of one process that overlap were there one after the other: only for these is the time
// looked at.
void etl_system_settle(struct etl_system *system)
{
	if (system->images_count == 0)
		return;
	qsort(system->images, system->images_count, sizeof *system->images, compare_images);
	for (size_t i = 1; i < system->images_count; i++) {
		struct etl_image *low = &system->images[i - 1], *high = &system->images[i];

		if (low->pid == high->pid && high->start < low->end)
			low->recycled = high->recycled = true;
	}
	for (size_t i = 0; i < system->rsds_count; i++)
		settle_rsds(system, &system->rsds[i]);
}

// Looks back over at most LOOK_BACK images, since one that begins earlier may reach over the
// address. Without a hit in time, the one nearest below counts.
uint32_t etl_system_find_image(const struct etl_system *system, uint32_t pid, uint64_t address,
			       uint64_t time)
{
	size_t at = images_behind(system, pid, address);
	uint32_t found = UINT32_MAX;

	for (size_t i = 0; i < LOOK_BACK && at > 0 && system->images[at - 1].pid == pid; i++) {
		const struct etl_image *image = &system->images[--at];

		if (address >= image->end)
			continue;
		if (image->loaded <= time && time <= image->unloaded)
			return (uint32_t)at;
		if (found == UINT32_MAX)
			found = (uint32_t)at;
		if (!image->recycled)
			break;
	}
	return found;
}

const struct etl_image *etl_system_image(const struct etl_system *system, uint32_t number)
{
	ASSERT(number < system->images_count);
	return &system->images[number];
}

uint32_t etl_system_images(const struct etl_system *system)
{
	return (uint32_t)system->images_count;
}

uint32_t etl_system_named(const struct etl_system *system)
{
	uint32_t count = 0;

	for (size_t i = 0; i < system->images_count; i++)
		count += system->images[i].build_id_length > 0;
	return count;
}

// Stacks of such a process are kept under a new space from here on, since one address means other
// code.
bool etl_system_reloads(const struct etl_system *system, const struct etl_event *event,
			uint32_t *pid)
{
	struct bytes_cursor cursor = bytes_cursor(event->data, event->size);
	unsigned pointer = event->pointer_bytes;
	uint64_t base;
	size_t at;

	if (event->opcode != IMAGE_LOAD || event->version < 1 ||
	    (event->group != ETL_PROCESS && event->group != ETL_IMAGE))
		return false;
	base = take(&cursor, pointer);
	take(&cursor, pointer);
	*pid = (uint32_t)take(&cursor, 4);
	at = images_behind(system, *pid, base);
	return !cursor.bad && at > 0 && system->images[at - 1].pid == *pid &&
	       system->images[at - 1].recycled;
}
