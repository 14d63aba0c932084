// picture: gnuplot runs in a folder of our own, with a script, the data, and a picture that is
// copied to its place when gnuplot has ended well. Paths are handed over as variables of the script
// and not as part of it, so that a kept script works with other paths, too.
#include "cli/picture.h"

#include "cli/absent.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/tool.h"
#include "trace/fresh.h"

#include <errno.h>
#include <stdio.h>

const struct picture picture_default = { .output = { .width = 1200, .height = 640 } };

// Where the parts of a picture are while it is made. With --keep two of them stay.
struct picture_files {
	struct str folder; // empty: it could not be made
	struct str script, data, picture;
	bool keep;
};

// The script, or without `output` the data.
static bool write_file(const char *path, const struct chart *chart,
		       const struct chart_output *output, struct err *err)
{
	FILE *file = file_stream(path, "w");
	struct sink sink;
	bool good;

	ASSERT(path && chart);
	if (!file)
		return err_errno(err, errno, "cannot write %s", path);
	sink = sink_to_file(file);
	sink.name = path;
	if (output)
		chart_write_script(chart, output, &sink);
	else
		chart_write_data(chart, &sink);
	good = sink_ok(&sink, err);
	if (fclose(file) != 0 && good)
		good = err_errno(err, errno, "cannot write %s", path);
	return good;
}

// 'name=value' for gnuplot's -e, the value in its quotes.
// A quote cannot be within quotes of its kind there: it's becomes 'it'."'".'s'.
static void define(struct str *text, const char *name, const char *value)
{
	// The value is between single quotes, where gnuplot takes a backslash as it is.
	str_format(text, "%s='", name);
	for (; *value; value++)
		str_add(text, *value == '\'' ? "'.\"'\".'" : (const char[]){ *value, 0 });
	str_add(text, "'; ");
}

// What it complains of is in its last lines: the last 300 bytes, as one line.
static void complain(struct str *said, struct err *err)
{
	const size_t shown = 300;
	size_t from = said->length > shown ? said->length - shown : 0;

	for (size_t i = 0; i < said->length; i++)
		if (said->text[i] == '\n')
			said->text[i] = ' ';
	if (said->length > 0)
		err_wrap(err, "%s", said->text + from);
}

static bool run_gnuplot(const struct picture_files *files, struct err *err)
{
	struct str settings = { 0 }, said = { 0 };
	const char *arguments[] = { "gnuplot", "-e", NULL, str_get(&files->script), NULL };
	enum tool_result result;

	ASSERT(files->script.length > 0 && files->data.length > 0);
	define(&settings, "data", str_get(&files->data));
	define(&settings, "picture", str_get(&files->picture));
	// The string grows while it is made, so its address is known only now.
	arguments[2] = str_get(&settings);
	result = tool_run(arguments, &said, err);
	if (result != TOOL_DONE)
		complain(&said, err);
	STR_FINI(&settings, &said);
	return result == TOOL_DONE;
}

// Copied rather than renamed: the folder may be on another disk.
static bool copy_into(struct fresh *fresh, const char *from, struct err *err)
{
	struct file_view view = { 0 };
	bool good = file_view_open(&view, from, err) &&
		    (file_write_all(fresh->fd, view.bytes, view.size, err) ||
		     err_wrap(err, "%s", str_get(&fresh->path))) &&
		    fresh_keep(fresh, err);

	file_view_close(&view);
	return good;
}

// The picture appears when it is whole, or not at all.
static bool draw(const struct picture *picture, const struct chart *chart,
		 struct picture_files *files, struct err *err)
{
	struct chart_output output = picture->output;
	struct fresh fresh = { .fd = -1 };
	bool good;

	// In this order, since each needs the one before: the data, the script that names them, the
	// picture, and last its place. The place is taken when gnuplot has succeeded, so a failure
	// leaves what was there.
	output.data = str_get(&files->data);
	good = write_file(str_get(&files->data), chart, NULL, err) &&
	       write_file(str_get(&files->script), chart, &output, err) &&
	       run_gnuplot(files, err) &&
	       fresh_open(&fresh, picture->output.path, picture->force, err) &&
	       copy_into(&fresh, str_get(&files->picture), err);
	fresh_close(&fresh);
	return good;
}

// False: clear_up is to be called all the same.
static bool set_up(const struct picture *picture, struct picture_files *files, struct err *err)
{
	const char *path = picture->output.path;

	files->keep = picture->keep;
	if (!tool_folder(&files->folder, err))
		return false;
	// The picture is made in the folder, with or without --keep; what is kept stands beside its
	// place.
	str_format(&files->picture, "%s/picture", files->folder.text);
	if (files->keep) {
		str_format(&files->script, "%s.gnuplot", path);
		str_format(&files->data, "%s.dat", path);
		return true;
	}
	str_format(&files->script, "%s/script", files->folder.text);
	str_format(&files->data, "%s/data", files->folder.text);
	return true;
}

static void clear_up(struct picture_files *files)
{
	if (files->folder.length > 0) {
		file_remove(str_get(&files->picture));
		if (!files->keep) {
			file_remove(str_get(&files->script));
			file_remove(str_get(&files->data));
		}
	}
	tool_folder_leave(&files->folder);
	STR_FINI(&files->script, &files->data, &files->picture);
}

// The picture itself, and where its script and data are kept, their files beside it.
bool picture_check(const struct picture *picture, struct err *err)
{
	static const char *const kept[] = { "", ".gnuplot", ".dat" };
	bool can = tool_find("gnuplot") ||
		   err_set(err, ERR_IO, "gnuplot, which draws the pictures, is not there (%s)",
			   absent_gnuplot);

	ASSERT(picture->output.path);
	for (size_t i = 0; i < (picture->keep ? 3 : 1) && can; i++) {
		struct str path = { 0 };

		str_format(&path, "%s%s", picture->output.path, kept[i]);
		can = fresh_check(str_get(&path), picture->force, err);
		str_fini(&path);
	}
	return can;
}

bool picture_draw(const struct picture *picture, const struct chart *chart, struct err *err)
{
	struct picture_files files = { 0 };
	bool good;

	ASSERT(picture->output.path && chart);
	good = set_up(picture, &files, err) && draw(picture, chart, &files, err);

	clear_up(&files);
	return good;
}
