#include "launch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>
#include <windows.h>

enum { OUTPUT_PATH_MAX = 32768 };

static wchar_t wide[OUTPUT_PATH_MAX]; // the launcher's only thread

static bool widen(const char *path)
{
	// What is not UTF-8 is refused rather than written under another name.
	return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, OUTPUT_PATH_MAX) >
	       0;
}

// Others may read while it grows.
int output_open(const char *path, bool force, bool *created)
{
	int flags = _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT;
	int fd;

	if (!widen(path)) {
		errno = ENOENT;
		return -1;
	}
	fd = _wsopen(wide, flags | _O_EXCL, _SH_DENYNO, _S_IREAD | _S_IWRITE);
	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST || !force)
		return fd;
	return _wsopen(wide, flags | _O_TRUNC, _SH_DENYNO, _S_IREAD | _S_IWRITE);
}

bool output_is_plain(const char *path)
{
	const DWORD others = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE |
			     FILE_ATTRIBUTE_REPARSE_POINT;
	DWORD is = widen(path) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	return is != INVALID_FILE_ATTRIBUTES && !(is & others);
}

// The system itself refuses to open a file that runs or that another has open to write.
const char *output_is_its(const char *, const char *, char *const *)
{
	return NULL;
}

// Pipes have names of their own there, which no file has.
const char *output_is_waited_for(const char *)
{
	return NULL;
}

void output_host(char *host, size_t room)
{
	DWORD bytes = (DWORD)room;

	GetComputerNameA(host, &bytes);
}
