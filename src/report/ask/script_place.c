// All answers are ends of the path. For example `python3 shop/run.py`, and frames of
// /srv/v2/shop/run.py: the path ends with the argument, so scripts are in /srv/v2/shop/, and the
// program works in /srv/v2/.
#include "report/ask/script_place.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

enum { PROCESSES_MAX = 64, ARGUMENTS_MAX = 16 };

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

// How long the folder is in which `argument` begins, if it is `path`. "./run.py" of /srv/v2/run.py
// begins in /srv/v2/, "/srv/v2/run.py" nowhere.
static bool is_argument(const char *path, const char *argument, size_t *length)
{
	size_t all = strlen(path), end;

	while (argument[0] == '.' && is_slash(argument[1]))
		argument += 2;
	end = strlen(argument);
	if (end == 0 || end > all || strcmp(path + all - end, argument) != 0 ||
	    (end < all && !is_slash(path[all - end - 1])))
		return false;
	ASSERT(length != NULL);
	*length = all - end;
	return true;
}

// Whether the script is an argument of a process. Options are not known from scripts here, but are
// no paths of frames.
static bool is_started(struct script_place *place, const struct reader *reader, const char *path)
{
	uint32_t processes = reader_processes_count(reader);

	for (process_id id = 0; id < processes && id < PROCESSES_MAX; id++) {
		const struct trace_process *process = reader_process(reader, id);

		for (uint32_t i = 1; i < process->args_count && i < ARGUMENTS_MAX; i++) {
			if (!is_argument(path, process->args[i], &place->work_length))
				continue;
			place->path = path;
			place->script_length = (size_t)(str_last_part_of_any(path) - path);
			ASSERT(place->work_length <= place->script_length);
			return true;
		}
	}
	return false;
}

// A trace that grows has more frames the next time.
static void look(struct script_place *place, const struct reader *reader)
{
	for (; place->looked < reader_frames_count(reader); place->looked++) {
		const struct trace_frame *frame = reader_frame(reader, place->looked);
		size_t count = 0;
		const struct trace_name *names =
			frame && frame->module == 0
				? reader_frame_names(reader, place->looked, &count)
				: NULL;

		if (names && count > 0 && *names[0].file &&
		    is_started(place, reader, names[0].file))
			return;
	}
}

// Behind the last folder of that name; `versioned`: with digits and dots after it.
static const char *behind(const char *file, const char *folder, bool versioned)
{
	const char *after = NULL;

	for (const char *at = file; (at = strstr(at, folder));) {
		at += strlen(folder);
		while (versioned && (isdigit((unsigned char)*at) || *at == '.'))
			at++;
		if (!versioned)
			after = at;
		else if (is_slash(*at))
			after = at + 1;
	}
	return after;
}

// The innermost: a package may have others in a folder of its own.
static const char *in_library(const char *file)
{
	static const struct {
		const char *folder;
		bool versioned;
	} folders[] = {
		{ "/node_modules/", false },
		{ "/site-packages/", false },
		{ "/dist-packages/", false },
		{ "/lib/python", true },
	};
	const char *place = NULL;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		const char *after = behind(file, folders[i].folder, folders[i].versioned);

		if (after && (!place || after > place))
			place = after;
	}
	return place;
}

// What a folder is called by: its name goes with it.
static bool is_of_folder(const char *name)
{
	return strncmp(name, "__init__.", 9) == 0 || strncmp(name, "__main__.", 9) == 0 ||
	       strncmp(name, "index.", 6) == 0;
}

// Libraries first, as an environment may be in the program's folder.
const char *script_place_of(struct script_place *place, const struct reader *reader,
			    const char *file)
{
	const char *library = in_library(file), *name = str_last_part_of_any(file);

	ASSERT(!library || (library >= file && library <= file + strlen(file)));
	if (library)
		return library;
	if (!place->path)
		look(place, reader);
	if (place->script_length && strncmp(file, place->path, place->script_length) == 0)
		return file + place->script_length;
	// A path on the command line that begins at the root says of no folder that it is the
	// program's.
	if (place->work_length && strncmp(file, place->path, place->work_length) == 0)
		return file + place->work_length;
	// A path that is none (<string>), or that begins in the program's folder.
	// Of Python before 3.9 the path is as it was given.
	if (!is_slash(*file) && !(*file && file[1] == ':') && strncmp(file, "file:", 5) != 0)
		return file;
	if (is_of_folder(name) && name > file + 1)
		for (name--; name > file && !is_slash(name[-1]);)
			name--;
	return name;
}
