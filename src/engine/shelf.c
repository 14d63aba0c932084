// Written and read as the `head` of an index is (index_io): all or nothing, with a checksum.
#include "engine/shelf.h"

#include "base/mem.h"
#include "engine/index/index_disk.h"
#include "engine/window_source.h"
#include "os/file.h"

#include <string.h>

enum { LONG_PASS = 1 << 22 }; // events from which a folder is made for what they add up to

void shelf_find(struct shelf *shelf, const struct reader *reader, const char *trace_path,
		const struct query *query, const struct window_options *window)
{
	enum window_source_wish word;
	struct err ignored = { 0 };

	*shelf = (struct shelf){ 0 };
	if (!trace_path || (query && query_narrows(query)) || window->plain ||
	    !reader_sound(reader) || !window_source_wish(&word, &ignored) ||
	    word == WINDOW_SOURCE_NEVER ||
	    !index_identify(&shelf->identity, trace_path, reader, UINT64_MAX, &ignored))
		return;
	shelf->make = word != WINDOW_SOURCE_AUTO || reader_stats(reader)->events >= LONG_PASS;
	shelf->rebuild = window->rebuild;
	shelf->trace_path = trace_path;
	shelf->path = window->index_path
			      ? mem_copy_text(window->index_path)
			      : window_source_path(trace_path, shelf->identity.recording_id,
						   &shelf->cached);
}

void shelf_fini(struct shelf *shelf)
{
	uint64_t cache_bytes;
	struct err ignored = { 0 };

	if (shelf->cached && index_disk_limit(&cache_bytes, &ignored))
		index_disk_keep(shelf->path, cache_bytes);
	mem_free(shelf->path);
	*shelf = (struct shelf){ 0 };
}

// Nothing is believed of a file that was written for another trace.
bool shelf_open(const struct shelf *shelf, const char *name, struct shelf_stamp *stamp,
		struct index_in *in)
{
	int directory = shelf->path && !shelf->rebuild ? file_open_folder(shelf->path) : -1;
	struct err ignored = { 0 };
	struct shelf_stamp found;
	bool good;

	if (directory < 0)
		return false;
	stamp->identity = shelf->identity;
	good = index_in_open(in, directory, name, &ignored);
	file_close(directory);
	if (!good)
		return false;
	index_in_take(in, &found, sizeof found);
	good = memcmp(&found, stamp, sizeof found) == 0;
	if (!good)
		index_in_close(in);
	return good;
}

struct index_out *shelf_new(struct shelf *shelf, const char *name, struct shelf_stamp *stamp)
{
	struct index_out *out;

	if (!shelf->path)
		return NULL;
	if (shelf->make && file_make_folder(shelf->path, true))
		file_share_folder(shelf->path, shelf->trace_path);
	shelf->directory = file_open_folder(shelf->path);
	if (shelf->directory < 0)
		return NULL;
	stamp->identity = shelf->identity;
	out = index_out_new(shelf->directory, name);
	index_out_put(out, stamp, sizeof *stamp);
	return out;
}

void shelf_end(struct shelf *shelf, struct index_out *out)
{
	struct err ignored = { 0 };

	index_out_end(out, &ignored);
	file_close(shelf->directory);
}
