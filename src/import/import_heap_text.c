// import_heap_text: heap profiles as text, of jemalloc (`heap_v2/…`) and gperftools (`heap
// profile:`).
//
// Both are a snapshot: sums of blocks and bytes by stack, then the process's mapped files. A
// sampled one holds each block with probability 1 - e^(-size/distance): the trace is sampled alike,
// so that what is estimated of it follows the same rule.
//
// For example of gperftools, after the head:
//
//     3: 300 [10: 1000] @ 0x4010a1 0x4012f0
//
// Three blocks of 300 bytes live, of ten of 1,000 bytes that were ever allocated there; the stack
// is innermost first. jemalloc has "@ 0x4010a1 0x4012f0" on one line, and on the next " t*: 3: 300
// [0: 0]".
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/mapped_files.h"
#include "import/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { FRAMES_MAX = 1 << 12, STEP_NS = 1000000000 };

// A stack as it is told, until the mapped files are known, which come last.
struct told {
	uint64_t count, bytes;
	size_t first, frames; // of all addresses
};

// Stacks are kept until the list of mapped files is there, and then put as a snapshot.
struct profile {
	struct import_work *work;
	struct intake *intake;
	struct mapped_files mappings;
	struct told *all;
	size_t count, capacity;
	uint64_t *addresses;
	size_t addresses_count, addresses_capacity;
	bool mapped; // its files come now
};

// All profiles of a series must be sampled alike, since a trace has one distance.
static bool set_distance(struct profile *profile, const char *number, struct err *err)
{
	struct trace_info *info = intake_info(profile->intake);
	uint64_t distance;

	if (!number_parse(number, strspn(number, "0123456789"), &distance))
		return err_set(err, ERR_FORMAT, "\"%.40s\" is not a distance of samples", number);
	if (profile->work->input == 0)
		info->sample_bytes = distance > 1 ? distance : 0;
	else if (info->sample_bytes != (distance > 1 ? distance : 0))
		return err_set(err, ERR_FORMAT,
			       "it is sampled at another distance (%" PRIu64
			       ") than the first (%" PRIu64 ")",
			       distance, info->sample_bytes);
	return true;
}

// `heap_v2/DISTANCE`, or `heap profile: N: BYTES [N: BYTES] @ KIND`.
// The kind tells how samples were drawn; others (growth, contention) do not say what lives.
static bool read_head(struct profile *profile, const char *line, struct err *err)
{
	const char *kind = strchr(line, '@');

	if (strncmp(line, "heap_v2/", 8) == 0)
		return set_distance(profile, line + 8, err);
	kind = kind ? kind + 1 + strspn(kind + 1, " ") : "";
	if (strncmp(kind, "heap_v2/", 8) == 0)
		return set_distance(profile, kind + 8, err);
	if (strcmp(kind, "heapprofile") == 0)
		return set_distance(profile, "0", err);
	return err_set(err, ERR_FORMAT,
		       "its kind of heap profile (\"%.40s\") is not known (known are "
		       "heapprofile and heap_v2)",
		       kind);
}

// A number that `end` follows; the cursor moves past both.
static bool take(const char **at, char end, uint64_t *number)
{
	size_t length;

	*at += strspn(*at, " ");
	length = strspn(*at, "0123456789");
	if (!number_parse(*at, length, number) || (*at)[length] != end)
		return false;
	*at += length + 1;
	return true;
}

// `N: BYTES [N: BYTES]`, and where it ends.
static bool take_sums(const char **at, struct told *told)
{
	uint64_t count, bytes;

	if (!take(at, ':', &told->count) || !take(at, ' ', &told->bytes))
		return false;
	*at += strspn(*at, " ");
	return *(*at)++ == '[' && take(at, ':', &count) && take(at, ']', &bytes);
}

// They go to one array for all stacks; `told` says which part of it is its own.
static bool take_addresses(struct profile *profile, const char *at, struct told *told)
{
	told->first = profile->addresses_count;
	for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		uint64_t address;

		if (!number_parse_hex(at, length, &address))
			return false;
		*MEM_ADD(profile->addresses, profile->addresses_count,
			 profile->addresses_capacity) = address;
		at += length;
	}
	told->frames = profile->addresses_count - told->first;
	return told->frames <= FRAMES_MAX;
}

static struct told *add_told(struct profile *profile, const struct told *told)
{
	*MEM_ADD(profile->all, profile->count, profile->capacity) = *told;
	return &profile->all[profile->count - 1];
}

// False: it is no line of a profile.
static bool read_line(struct profile *profile, const char *line)
{
	struct told told = { 0 };
	const char *at = line + strspn(line, " ");

	if (!*at)
		return true;
	if (strncmp(at, "MAPPED_LIBRARIES:", 17) == 0) {
		profile->mapped = true;
		return true;
	}
	if (profile->mapped) {
		mapped_files_add(&profile->mappings, line);
		return true;
	}
	if (*at == '@') { // jemalloc: a stack; its sums follow
		if (!take_addresses(profile, at + 1, &told))
			return false;
		add_told(profile, &told);
		return true;
	}
	if (*at == 't') { // and those of all threads, t*, or of one
		if (strncmp(at, "t*:", 3) != 0)
			return isdigit((unsigned char)at[1]);
		at += 3;
		if (!take_sums(&at, &told))
			return false;
		if (profile->count > 0) { // the first are of the whole
			profile->all[profile->count - 1].count = told.count;
			profile->all[profile->count - 1].bytes = told.bytes;
		}
		return true;
	}
	if (!take_sums(&at, &told))
		return false;
	at += strspn(at, " ");
	if (*at != '@' || !take_addresses(profile, at + 1, &told))
		return false;
	add_told(profile, &told);
	return true;
}

// Return addresses: one less is within the call.
static void put_all(struct profile *profile)
{
	struct import_work *work = profile->work;
	process_id process = intake_process(profile->intake, NULL);
	thread_id thread = intake_thread(profile->intake, process, NULL);

	series_begin(work->series, work->options->inputs[work->input].path,
		     work->input * (uint64_t)STEP_NS);
	for (size_t i = 0; i < profile->count; i++) {
		const struct told *told = &profile->all[i];
		stack_id stack = 0;

		if (told->count == 0)
			continue;
		ASSERT(told->first + told->frames <= profile->addresses_count);
		for (size_t frame = told->frames; frame-- > 0;) {
			uint64_t pc = profile->addresses[told->first + frame] - 1;
			module_id module =
				mapped_files_find(&profile->mappings, profile->intake, process, pc);

			stack = intake_stack(profile->intake, stack,
					     intake_frame_address(profile->intake, module, pc));
		}
		series_add(work->series, thread, stack, 0, told->count, told->bytes);
	}
	series_end(work->series);
}

static bool is_heap_text(const char *head, size_t length)
{
	return (length > 8 && strncmp(head, "heap_v2/", 8) == 0) ||
	       (length > 13 && strncmp(head, "heap profile:", 13) == 0);
}

static bool read_heap_text(struct import_work *work, struct err *err)
{
	struct profile profile = { .work = work, .intake = work->intake };
	bool ok = true, first = true;
	size_t length;
	char *line;

	if (work->input == 0) {
		intake_lacks(work->intake, "numbered");
		intake_lacks(work->intake, "no-threads");
	}
	while (ok && import_line(work, &line, &length)) {
		ok = first ? read_head(&profile, line, err)
			   : read_line(&profile, line) ||
				     err_set(err, ERR_FORMAT,
					     "\"%.60s\" is not a line of a heap profile", line);
		first = false;
	}
	ok = ok || (!first && import_was_cut(work, err));
	if (ok && !profile.mapped && profile.count) {
		str_add(work->remarks, "it has no list of mapped files: addresses have no names\n");
	}
	if (ok)
		put_all(&profile);
	mapped_files_fini(&profile.mappings);
	MEM_FREE(profile.all, profile.addresses);
	return ok;
}

const struct import_format import_heap_text = {
	.name = "heap-profile",
	.snapshots = true,
	.is = is_heap_text,
	.read = read_heap_text,
};
