// The serial number of the volume and the index of the file are here what device and inode are on
// POSIX; the times count from 1601, which does not matter, as they are only compared.
#include "os/identity.h"

#include "base/mem.h"
#include "os/wide_win32.h"

#include <windows.h>

// FILETIME counts steps of 100 ns.
enum { STEPS_PER_SECOND = 10000000, STEP_NS = 100 };

static uint64_t joined(DWORD high, DWORD low)
{
	return (uint64_t)high << 32 | low;
}

bool identity_find(struct identity *identity, const char *path, struct err *err)
{
	uint16_t *wide = wide_new_path(path);
	// A directory opens only with these semantics; nothing of it is read.
	HANDLE file = CreateFileW((const wchar_t *)wide, FILE_READ_ATTRIBUTES,
				  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				  OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	BY_HANDLE_FILE_INFORMATION now;
	uint64_t written;
	bool good;

	mem_free(wide);
	if (file == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_IO, "cannot look at %s", path);
	good = GetFileInformationByHandle(file, &now);
	CloseHandle(file);
	if (!good)
		return err_set(err, ERR_IO, "cannot look at %s", path);
	written = joined(now.ftLastWriteTime.dwHighDateTime, now.ftLastWriteTime.dwLowDateTime);
	*identity = (struct identity){
		.device = now.dwVolumeSerialNumber,
		.number = joined(now.nFileIndexHigh, now.nFileIndexLow),
		.size_bytes = joined(now.nFileSizeHigh, now.nFileSizeLow),
		.changed_s = (int64_t)(written / STEPS_PER_SECOND),
		.changed_ns = (int64_t)(written % STEPS_PER_SECOND) * STEP_NS,
	};
	return true;
}
