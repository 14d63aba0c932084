// fpo_win32: the PDB of a module, looked for beside the module and then where the linker has put
// it. It is read with the system's own functions for files, in pages of ours; fpo.c knows what is
// in it.
#include "recorder/fpo_win32.h"

#include "recorder/nt_win32.h"
#include "recorder/recording.h"
#include "recorder/text.h"

enum {
	FPO_PATH_UNITS = 2048,
	FPO_DRIVE_UNITS = 3, // C:\, or C:/
};

// In code_lock.
static uint16_t fpo_path[FPO_PATH_UNITS];

static const uint16_t fpo_prefix[] = { '\\', '?', '?', '\\' };

// All of `bytes`, or false.
static bool fpo_read_at(void *file, uint64_t at, void *out, size_t bytes)
{
	struct nt_outcome outcome = { 0, 0 };
	int64_t from = (int64_t)at;

	return NtReadFile(file, NULL, NULL, NULL, &outcome, out, (uint32_t)bytes, &from, NULL) ==
		       NT_SUCCESS &&
	       outcome.bytes == bytes;
}

static void *fpo_pages(size_t bytes)
{
	return recording_pages(bytes, false);
}

// The path is in fpo_path, as the object manager names it (\??\C:\…). NULL: there is no such file,
// or it is another build's.
static struct fpo_table *fpo_read_path(uint32_t units, const uint8_t id[FPO_ID_BYTES],
				       uint32_t image_bytes)
{
	struct nt_text name = { (uint16_t)(units * 2), (uint16_t)(units * 2), fpo_path };
	struct nt_object object = { .length = sizeof(object),
				    .name = &name,
				    .attributes = NT_OBJECT_ANY_CASE };
	struct {
		int64_t allocated, bytes;
		uint32_t links;
		uint8_t flags[4];
	} about;
	struct fpo_file file = { .read = fpo_read_at,
				 .take = fpo_pages,
				 .give_back = recording_give_back };
	struct fpo_table *table = NULL;
	struct nt_outcome outcome;

	if (NtOpenFile(&file.context, NT_FILE_READ | NT_SYNCHRONIZE, &object, &outcome,
		       NT_FILE_SHARED, NT_FILE_WAITS | NT_FILE_NO_FOLDER) != NT_SUCCESS)
		return NULL;
	if (NtQueryInformationFile(file.context, &outcome, &about, sizeof(about),
				   NT_FILE_STANDARD) == NT_SUCCESS) {
		file.bytes = (uint64_t)about.bytes;
		table = fpo_read(&file, id, image_bytes);
	}
	NtClose(file.context);
	return table;
}

static bool fpo_is_drive(const char *path, uint32_t bytes)
{
	char letter = (char)(path[0] | 32);

	return bytes > FPO_DRIVE_UNITS && letter >= 'a' && letter <= 'z' && path[1] == ':' &&
	       (path[2] == '\\' || path[2] == '/');
}

// Append a path of which only ASCII is known. 0: it does not fit, or is something else.
static uint32_t fpo_append(uint32_t units, const char *text, uint32_t bytes)
{
	if (bytes > FPO_PATH_UNITS - units)
		return 0;
	for (uint32_t i = 0; i < bytes; i++) {
		if ((uint8_t)text[i] >= 0x80)
			return 0;
		fpo_path[units + i] = text[i] == '/' ? '\\' : (uint8_t)text[i];
	}
	return units + bytes;
}

// A path in the image of another machine may name a device or a share there: only one that begins
// with a drive is tried.
struct fpo_table *fpo_load(const struct nt_text *image, const char *pdb, uint32_t pdb_bytes,
			   const uint8_t id[FPO_ID_BYTES], uint32_t image_bytes)
{
	enum { PREFIX = sizeof(fpo_prefix) / sizeof(*fpo_prefix) };
	uint32_t folder = image->bytes / 2, file = pdb_bytes, units;
	struct fpo_table *table = NULL;

	while (folder > 0 && image->text[folder - 1] != '\\')
		folder--;
	while (file > 0 && pdb[file - 1] != '\\' && pdb[file - 1] != '/')
		file--;
	memcpy(fpo_path, fpo_prefix, sizeof(fpo_prefix));
	if (folder > 0 && folder < FPO_PATH_UNITS - PREFIX) {
		memcpy(fpo_path + PREFIX, image->text, folder * 2);
		units = fpo_append(PREFIX + folder, pdb + file, pdb_bytes - file);
		table = units ? fpo_read_path(units, id, image_bytes) : NULL;
	}
	if (!table && fpo_is_drive(pdb, pdb_bytes)) {
		units = fpo_append(PREFIX, pdb, pdb_bytes);
		table = units ? fpo_read_path(units, id, image_bytes) : NULL;
	}
	return table;
}
