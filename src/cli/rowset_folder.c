// rowset_folder: tables are written into PATH.PID.part, which is renamed when the last one is
// closed. A run that is killed leaves that folder; one that is told to end removes it
// (quit_removes).
#include "cli/rowset_folder.h"

#include "base/mem.h"
#include "export/parquet.h"
#include "os/file.h"
#include "os/quit.h"
#include "os/tool.h"

#include <errno.h>
#include <string.h>

struct folder {
	struct str path;  // where it is made, before it has its name
	struct str table; // that is being written
	FILE *file;
	struct sink sink;
};

// Append the path of a table in it.
static void table_path(const char *path, enum rowset_table_id id, struct str *file)
{
	ASSERT(id < ROWSET_TABLES);
	str_format(file, "%s/%s.parquet", path, rowset_tables[id].name);
}

void rowset_folder_remove(const char *path)
{
	// Files that are not there are no mistake: a run that broke off has some of them. The
	// folder itself goes last, and only if nothing else is in it.
	struct str file = { 0 };

	for (enum rowset_table_id id = 0; id < ROWSET_TABLES; id++) {
		str_clear(&file);
		table_path(path, id, &file);
		file_remove(file.text);
	}
	str_fini(&file);
	file_remove_folder(path);
}

// Anything in it that is no table of ours?
static void look(void *context, const char *name)
{
	bool *strange = context;
	struct str file = { 0 };
	bool known = false;

	for (enum rowset_table_id id = 0; id < ROWSET_TABLES; id++) {
		str_clear(&file);
		str_format(&file, "%s.parquet", rowset_tables[id].name);
		known = known || strcmp(name, file.text) == 0;
	}
	str_fini(&file);
	*strange = *strange || !known;
}

bool rowset_folder_check(const char *path, bool replace, struct err *err)
{
	enum file_kind kind = file_look(path);

	// Whether it exists is looked at again by the renaming, which replaces nothing: what
	// appears meanwhile is not lost.
	bool strange = false;

	if (kind == FILE_IS_MISSING)
		return true;
	// Only a folder that has nothing but tables is replaced: --force with a slip in the name
	// must not remove a user's files.
	if (kind == FILE_IS_FOLDER && replace) {
		if (!file_list(path, look, &strange))
			return err_errno(err, errno, "cannot read %s", path);
		return !strange ||
		       err_set(err, ERR_USAGE, "%s has files in it that are not tables", path);
	}
	if (kind == FILE_IS_FOLDER)
		return err_set(err, ERR_IO, "%s exists already (--force overwrites it)", path);
	return err_set(err, ERR_USAGE,
		       "%s is not a folder; a file holds one of the tables (--table NAME)", path);
}

// One at a time: the sink is the folder's, until close_table.
static struct sink *open_table(void *context, const struct rowset_table *table, struct err *err)
{
	struct folder *folder = context;

	ASSERT(!folder->file);
	str_clear(&folder->table);
	table_path(folder->path.text, rowset_find(table->name), &folder->table);
	folder->file = file_stream(folder->table.text, "wb");
	if (!folder->file)
		err_errno(err, errno, "cannot write %s", folder->table.text);
	folder->sink = sink_to_file(folder->file);
	folder->sink.name = folder->table.text;
	return folder->file ? &folder->sink : NULL;
}

static bool close_table(void *context, struct err *err)
{
	struct folder *folder = context;
	FILE *file = folder->file;

	ASSERT(file);
	folder->file = NULL;
	return fclose(file) == 0 || err_errno(err, errno, "cannot write %s", folder->table.text);
}

// Between the removal and the renaming there is neither: a folder cannot be replaced in one step.
static bool keep(const struct folder *folder, const char *path, bool replace, struct err *err)
{
	if (replace)
		rowset_folder_remove(path);
	return file_rename(folder->path.text, path, false) ||
	       err_errno(err, errno, "cannot make %s", path);
}

bool rowset_folder_write(const struct export_source *source, const char *path, bool replace,
			 struct err *err)
{
	struct folder folder = { 0 };
	const struct parquet_files files = { open_table, close_table, &folder };
	size_t length = strlen(path);
	bool good;

	if (!rowset_folder_check(path, replace, err))
		return false;
	// "x/" is made as "x.123.part".
	while (length > 1 && path[length - 1] == '/')
		length--;
	str_format(&folder.path, "%.*s.%ld.part", (int)length, path, (long)tool_own_pid());
	good = file_make_folder(folder.path.text, false) ||
	       err_errno(err, errno, "cannot make %s", path);
	if (good) {
		quit_removes(folder.path.text);
		good = parquet_write(source, (1u << ROWSET_TABLES) - 1, &files, err) &&
		       keep(&folder, path, replace, err);
		// parquet_write failed inside of a table: its file is open still.
		if (folder.file)
			fclose(folder.file);
		if (!good)
			rowset_folder_remove(folder.path.text);
		quit_keeps(folder.path.text);
	}
	STR_FINI(&folder.path, &folder.table);
	return good;
}
