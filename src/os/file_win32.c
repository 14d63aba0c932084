// Files by Windows' own calls, with what POSIX promises where they promise less: errors are said
// by errno, and an open file can be renamed and removed.
//
// For example, file_read_at of 3 GiB: ReadFile counts in 32 bits, so it is called three times, for
// 1 GiB each (ONCE_MAX). If the file ends after 2.5 GiB, the third call returns what is there, and
// the fourth says that the file has ended, which is no error: 2.5 GiB were read.
#include "os/file.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/wide_win32.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { READ_BYTES = 1 << 16, ONCE_MAX = 1 << 30 };

// What an empty view shows: an address that is no memory to give back.
static const uint8_t nothing[1];

// What Windows said, as an errno. Always false.
static bool failed(DWORD code)
{
	static const struct {
		DWORD code;
		int number;
	} known[] = {
		{ ERROR_FILE_NOT_FOUND, ENOENT },
		{ ERROR_PATH_NOT_FOUND, ENOENT },
		{ ERROR_INVALID_NAME, ENOENT },
		{ ERROR_BAD_NETPATH, ENOENT },
		{ ERROR_INVALID_DRIVE, ENOENT },
		{ ERROR_DIRECTORY, ENOTDIR },
		{ ERROR_ACCESS_DENIED, EACCES },
		{ ERROR_SHARING_VIOLATION, EACCES },
		{ ERROR_LOCK_VIOLATION, EACCES },
		{ ERROR_WRITE_PROTECT, EROFS },
		{ ERROR_FILE_EXISTS, EEXIST },
		{ ERROR_ALREADY_EXISTS, EEXIST },
		{ ERROR_DISK_FULL, ENOSPC },
		{ ERROR_HANDLE_DISK_FULL, ENOSPC },
		{ ERROR_FILE_TOO_LARGE, EFBIG },
		{ ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
		{ ERROR_NO_DATA, EPIPE },
		{ ERROR_BROKEN_PIPE, EPIPE },
		{ ERROR_INVALID_HANDLE, EBADF },
		{ ERROR_DIR_NOT_EMPTY, ENOTEMPTY },
		{ ERROR_TOO_MANY_OPEN_FILES, EMFILE },
	};

	// What is not in the list is an error of input or output: some number has to be said, and 0
	// would read as success.
	errno = EIO;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].code == code)
			errno = known[i].number;
	return false;
}

static HANDLE handle_of(int fd)
{
	return (HANDLE)_get_osfhandle(fd);
}

// Every way to share is allowed, and a directory is told from a file that may not be opened.
static int open_wide(const uint16_t *path, unsigned how)
{
	DWORD access = GENERIC_READ, make = OPEN_EXISTING, flags = FILE_ATTRIBUTE_NORMAL;
	HANDLE handle;
	int fd;

	ASSERT(!(how & FILE_WRITE && how & FILE_ONLY_WRITE));
	ASSERT(!(how & FILE_EMPTY) || how & (FILE_WRITE | FILE_ONLY_WRITE));
	// Four words of CreateFileW say what six bits of `how` do: what may be done, what else may
	// be done by others, what is made or emptied, and how long it lives.
	if (how & FILE_WRITE)
		access |= GENERIC_WRITE;
	if (how & FILE_ONLY_WRITE)
		access = GENERIC_WRITE | FILE_READ_ATTRIBUTES;
	if (how & FILE_CREATE)
		make = how & FILE_EMPTY ? CREATE_ALWAYS : OPEN_ALWAYS;
	else if (how & FILE_EMPTY)
		make = TRUNCATE_EXISTING;
	if (how & FILE_NEW)
		make = CREATE_NEW;
	// Temporary tells the cache to write it to the disk late; it is deleted with its last
	// handle, also when we are killed.
	if (how & FILE_VANISHES) {
		flags = FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE;
		access |= DELETE;
	}
	// Shared in every way, as an open file of POSIX is: without FILE_SHARE_DELETE no one could
	// rename or remove it until it is closed.
	handle = CreateFileW((const wchar_t *)path, access,
			     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, make,
			     flags, NULL);
	if (handle == INVALID_HANDLE_VALUE) {
		DWORD code = GetLastError();
		DWORD attributes = GetFileAttributesW((const wchar_t *)path);

		// Opening a folder as a file is "access denied" here.
		failed(code);
		if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
			errno = EISDIR;
		return -1;
	}
	// The descriptor owns the handle from here on: _close closes both.
	fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
	if (fd < 0)
		CloseHandle(handle);
	return fd;
}

int file_open(const char *path, unsigned how)
{
	uint16_t *wide = wide_new_path(path);
	int fd = open_wide(wide, how);

	mem_free(wide);
	return fd;
}

// Without FILE_FLAG_BACKUP_SEMANTICS Windows opens no folder; with it files as well, so it is asked
// what was opened.
int file_open_folder(const char *path)
{
	uint16_t *wide = wide_new_path(path);
	HANDLE handle = CreateFileW((const wchar_t *)wide, FILE_READ_ATTRIBUTES,
				    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	BY_HANDLE_FILE_INFORMATION information;
	int fd = -1;

	mem_free(wide);
	if (handle == INVALID_HANDLE_VALUE) {
		failed(GetLastError());
		return -1;
	}
	if (!GetFileInformationByHandle(handle, &information) ||
	    !(information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY))
		errno = ENOTDIR;
	else
		fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
	if (fd < 0)
		CloseHandle(handle);
	return fd;
}

// The path of a file in a folder; the caller's. NULL and errno.
// By the folder's handle, so a folder that was renamed meanwhile is still the right one.
static uint16_t *path_in(int folder, const char *name)
{
	HANDLE handle = handle_of(folder);
	// Asked twice, for the length with its end and for the path.
	DWORD room = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED), count = 0;
	size_t length = strlen(name);
	uint16_t *path;

	if (room == 0) {
		failed(GetLastError());
		return NULL;
	}
	// Room for the path, a backslash, the name and the end. The path begins with \\?\, so it
	// may be longer than MAX_PATH.
	path = mem_alloc(room + length + 2, sizeof *path);
	count = GetFinalPathNameByHandleW(handle, (wchar_t *)path, room + 1, FILE_NAME_NORMALIZED);
	if (count == 0 || count > room) { // gone, or renamed to something longer meanwhile
		failed(count == 0 ? GetLastError() : ERROR_PATH_NOT_FOUND);
		mem_free(path);
		return NULL;
	}
	path[count++] = '\\';
	for (size_t i = 0; i < length; i++)
		path[count + i] = (uint8_t)name[i]; // our own names are ASCII
	return path;
}

int file_open_in(int folder, const char *name, unsigned how)
{
	uint16_t *path = path_in(folder, name);
	int fd = path ? open_wide(path, how) : -1;

	mem_free(path);
	return fd;
}

// A file in it that no other may open is the lock; Windows removes it with the handle, also when we
// are killed.
int file_lock_folder(const char *path)
{
	struct str lock = { 0 };
	uint16_t *wide;
	HANDLE handle;
	int fd = -1;

	str_format(&lock, "%s/lock", path);
	wide = wide_new_path(str_get(&lock));
	str_fini(&lock);
	// Shared with none (0): another who opens it gets a sharing violation, which is the lock.
	handle = CreateFileW((const wchar_t *)wide, GENERIC_WRITE, 0, NULL, OPEN_ALWAYS,
			     FILE_FLAG_DELETE_ON_CLOSE, NULL);
	mem_free(wide);
	if (handle != INVALID_HANDLE_VALUE)
		fd = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
	// The word that POSIX has for it, since callers ask for that.
	else if (GetLastError() == ERROR_SHARING_VIOLATION)
		errno = EWOULDBLOCK;
	else
		failed(GetLastError());
	return fd;
}

// Windows has no lock that leaves reading and writing free: it is only opened.
int file_lock(const char *path)
{
	return file_open(path, FILE_READ);
}

bool file_remove_in(int folder, const char *name)
{
	uint16_t *path = path_in(folder, name);
	bool ok = path && (DeleteFileW((const wchar_t *)path) || failed(GetLastError()));

	mem_free(path);
	return ok;
}

bool file_rename_in(int folder, const char *from, const char *to)
{
	uint16_t *old = path_in(folder, from), *new = path_in(folder, to);
	bool ok = old && new &&
		  (MoveFileExW((const wchar_t *)old, (const wchar_t *)new,
			       MOVEFILE_REPLACE_EXISTING) ||
		   failed(GetLastError()));

	mem_free(old);
	mem_free(new);
	return ok;
}

bool file_close(int fd)
{
	return fd < 0 || _close(fd) == 0;
}

void file_become(int fd, int other)
{
	_dup2(other, fd);
}

// Unlike pread's, this reading moves the descriptor's own position.
ptrdiff_t file_read_at(int fd, void *bytes, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		// A structure that is meant for reads that go on in the background also says where
		// to read: on a handle that was opened for plain reads the call waits, and the
		// position moves along.
		uint64_t place = at + done;
		OVERLAPPED where = { .Offset = (DWORD)place, .OffsetHigh = (DWORD)(place >> 32) };
		size_t part = size - done < ONCE_MAX ? size - done : ONCE_MAX;
		DWORD got = 0;

		if (!ReadFile(handle_of(fd), (char *)bytes + done, (DWORD)part, &got, &where)) {
			// With a place given, the end is an error and not a read of 0 bytes.
			if (GetLastError() == ERROR_HANDLE_EOF)
				break;
			failed(GetLastError());
			return -1;
		}
		if (got == 0)
			break;
		done += got;
	}
	ASSERT(done <= size);
	return (ptrdiff_t)done;
}

ptrdiff_t file_write_some(int fd, const void *bytes, size_t size)
{
	DWORD put = 0;

	// At most 1 GiB at a time: the count has 32 bits. file_write_all comes again for the rest.
	if (!WriteFile(handle_of(fd), bytes, (DWORD)(size < ONCE_MAX ? size : ONCE_MAX), &put,
		       NULL)) {
		failed(GetLastError());
		return -1;
	}
	return (ptrdiff_t)put;
}

bool file_cut(int fd, uint64_t size)
{
	LARGE_INTEGER to = { .QuadPart = (LONGLONG)size };
	HANDLE handle = handle_of(fd);

	// A file ends where its position is: so it is moved there first, and writing goes on there.
	return (SetFilePointerEx(handle, to, NULL, FILE_BEGIN) && SetEndOfFile(handle)) ||
	       failed(GetLastError());
}

// A byte that no file has, at 2^62, is locked: a lock of Windows keeps others from reading what it
// is on.
static OVERLAPPED claimed_byte(void)
{
	return (OVERLAPPED){ .Offset = 0, .OffsetHigh = 1 << 30 };
}

void file_claim(int fd)
{
	OVERLAPPED at = claimed_byte();

	LockFileEx(handle_of(fd), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		   &at);
}

// The lock that is taken for the question is given back at once.
bool file_is_claimed(int fd)
{
	OVERLAPPED at = claimed_byte();

	// A lock that is shared: it fails only where the writer has its own.
	if (!LockFileEx(handle_of(fd), LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at))
		return GetLastError() == ERROR_LOCK_VIOLATION || GetLastError() == ERROR_IO_PENDING;
	UnlockFileEx(handle_of(fd), 0, 1, 0, &at);
	return false;
}

// A lock of Windows would keep others from reading, so a file is never held alone.
bool file_hold(int, bool alone)
{
	return !alone;
}

uint64_t file_changed_ns(int)
{
	return 0;
}

// Not by writing zeros: the file's size stays what it is.
bool file_reserve(int fd, uint64_t at, uint64_t size)
{
	// Room is kept for the whole file and not from a place on, so what is in front of `at` is
	// in the sum.
	FILE_ALLOCATION_INFO wanted = { .AllocationSize.QuadPart = (LONGLONG)(at + size) };

	return SetFileInformationByHandle(handle_of(fd), FileAllocationInfo, &wanted,
					  sizeof wanted) ||
	       failed(GetLastError());
}

bool file_is_full(int number)
{
	return number == ENOSPC || number == EFBIG;
}

bool file_is_regular(int fd, uint64_t *size)
{
	LARGE_INTEGER large;
	HANDLE handle = handle_of(fd);

	if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileSizeEx(handle, &large))
		return false;
	*size = (uint64_t)large.QuadPart;
	return true;
}

uint64_t file_limit(void)
{
	return UINT64_MAX;
}

static DWORD attributes_of(const char *path)
{
	uint16_t *wide = wide_new_path(path);
	DWORD attributes = GetFileAttributesW((const wchar_t *)wide);

	mem_free(wide);
	return attributes;
}

enum file_kind file_look(const char *path)
{
	DWORD attributes = attributes_of(path);

	// Also where we may not look: then it is as good as missing.
	if (attributes == INVALID_FILE_ATTRIBUTES)
		return FILE_IS_MISSING;
	if (attributes & FILE_ATTRIBUTE_DIRECTORY)
		return FILE_IS_FOLDER;
	return attributes & FILE_ATTRIBUTE_DEVICE ? FILE_IS_OTHER : FILE_IS_REGULAR;
}

// Access lists say more than attributes do: try.
bool file_may_write(const char *path)
{
	DWORD attributes = attributes_of(path);
	struct str probe = { 0 };
	int fd;

	if (attributes == INVALID_FILE_ATTRIBUTES)
		return failed(GetLastError());
	if (!(attributes & FILE_ATTRIBUTE_DIRECTORY)) {
		fd = file_open(path, FILE_WRITE);
	} else {
		// In a folder, by making a file that vanishes again; our number in its name keeps
		// two of us apart.
		str_format(&probe, "%s/tidemark-%lu.tmp", path, GetCurrentProcessId());
		fd = file_open(str_get(&probe), FILE_WRITE | FILE_NEW | FILE_VANISHES);
		str_fini(&probe);
	}
	file_close(fd);
	return fd >= 0;
}

bool file_remove(const char *path)
{
	uint16_t *wide = wide_new_path(path);
	bool ok = DeleteFileW((const wchar_t *)wide) || failed(GetLastError());

	mem_free(wide);
	return ok;
}

bool file_rename(const char *from, const char *to, bool replace)
{
	uint16_t *old = wide_new_path(from), *new = wide_new_path(to);
	bool ok = MoveFileExW((const wchar_t *)old, (const wchar_t *)new,
			      replace ? MOVEFILE_REPLACE_EXISTING : 0) ||
		  failed(GetLastError());

	mem_free(old);
	mem_free(new);
	return ok;
}

bool file_make_folder(const char *path, bool ours)
{
	uint16_t *wide = wide_new_path(path);
	bool ok = CreateDirectoryW((const wchar_t *)wide, NULL) || failed(GetLastError());

	(void)ours; // what lies in a user's profile is his alone
	mem_free(wide);
	return ok;
}

bool file_remove_folder(const char *path)
{
	uint16_t *wide = wide_new_path(path);
	bool ok = RemoveDirectoryW((const wchar_t *)wide) || failed(GetLastError());

	mem_free(wide);
	return ok;
}

bool file_touch(const char *path)
{
	uint16_t *wide = wide_new_path(path);
	HANDLE file = CreateFileW((const wchar_t *)wide, FILE_WRITE_ATTRIBUTES,
				  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
				  OPEN_EXISTING, 0, NULL);
	FILETIME now;
	bool ok;

	mem_free(wide);
	// NULL leaves the times of creation and of the last access as they are.
	GetSystemTimeAsFileTime(&now);
	ok = file != INVALID_HANDLE_VALUE && SetFileTime(file, NULL, NULL, &now);
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	return ok || failed(GetLastError());
}

void file_let_in(int, const char *)
{
}

bool file_share_folder(const char *, const char *)
{
	return true;
}

bool file_list(const char *path, void (*tell)(void *context, const char *name), void *context)
{
	struct str pattern = { 0 };
	WIN32_FIND_DATAW found;
	uint16_t *wide;
	HANDLE search;

	str_format(&pattern, "%s/*", path);
	wide = wide_new_path(str_get(&pattern));
	str_fini(&pattern);
	search = FindFirstFileW((const wchar_t *)wide, &found);
	mem_free(wide);
	if (search == INVALID_HANDLE_VALUE)
		return failed(GetLastError());
	// Names come in 16 bits, and are told in UTF-8 as all paths here. What is not valid UTF-16
	// is replaced, so such a file cannot be opened by the name that was told.
	do {
		struct str name = { 0 };

		wide_add(&name, (const uint16_t *)found.cFileName, wcslen(found.cFileName));
		if (strcmp(str_get(&name), ".") != 0 && strcmp(str_get(&name), "..") != 0)
			tell(context, str_get(&name));
		str_fini(&name);
	} while (FindNextFileW(search, &found));
	FindClose(search);
	return true;
}

bool file_is_rooted(const char *path)
{
	// After the colon a slash of either kind: a path such as C:x is relative to where that
	// drive was left.
	return isalpha((unsigned char)path[0]) && path[1] == ':' &&
	       (path[2] == '/' || path[2] == '\\');
}

char *file_absolute(const char *path)
{
	uint16_t *wide = wide_new(path);
	wchar_t *found = _wfullpath(NULL, (const wchar_t *)wide, 0);
	struct str whole = { 0 };

	if (found)
		wide_add(&whole, (const uint16_t *)found, wcslen(found));
	else
		str_add(&whole, path);
	free(found);
	mem_free(wide);
	return str_take(&whole);
}

// A drive without a slash counts, too: in C:a.tide the name is a.tide.
const char *file_name(const char *path)
{
	return str_last_part_of_any(path);
}

char *file_caches(void)
{
	const wchar_t *folder = _wgetenv(L"LOCALAPPDATA");
	struct str path = { 0 };

	if (!folder || !*folder)
		return NULL;
	wide_add(&path, (const uint16_t *)folder, wcslen(folder));
	return str_take(&path);
}

// b: line ends stay as they are; N: programs that we start do not inherit it.
FILE *file_stream(const char *path, const char *mode)
{
	uint16_t *wide = wide_new_path(path);
	wchar_t ours[8] = { 0 };
	FILE *stream;

	ASSERT(strlen(mode) <= 5);
	// Modes are ASCII, so a byte is a unit.
	for (size_t i = 0; mode[i] && i < 5; i++)
		ours[i] = (wchar_t)mode[i];
	wcscat(ours, L"bN");
	stream = _wfopen((const wchar_t *)wide, ours);
	mem_free(wide);
	return stream;
}

FILE *file_stream_copy(int fd, const char *mode)
{
	int copy = _dup(fd);
	FILE *stream = copy >= 0 ? _fdopen(copy, mode) : NULL;

	if (stream)
		_setmode(copy, _O_BINARY);
	else if (copy >= 0)
		_close(copy);
	return stream;
}

// ---- views ----

bool file_view_open(struct file_view *view, const char *path, struct err *err)
{
	int fd = file_open(path, FILE_READ);
	bool ok;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	ok = file_view_fd(view, fd, err);
	file_close(fd);
	return ok || err_wrap(err, "cannot read %s", path);
}

// What cannot be mapped, as memory that is given back like a mapping: the view's size tells.
static bool view_by_reading(struct file_view *view, int fd, struct err *err)
{
	struct str text = { 0 };
	HANDLE section;
	void *bytes = NULL;

	if (!file_read_all(fd, &text, err)) {
		str_fini(&text);
		return false;
	}
	*view = (struct file_view){ .bytes = nothing };
	if (text.length > 0) {
		// Pages without a file, for what a view gives back must be a view of some mapping.
		section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE,
					     (DWORD)(text.length >> 32), (DWORD)text.length, NULL);
		if (section)
			bytes = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0);
		if (section)
			CloseHandle(section);
		if (!bytes) {
			failed(GetLastError());
			str_fini(&text);
			return err_errno(err, errno, "cannot map memory");
		}
		memcpy(bytes, text.text, text.length);
		*view = (struct file_view){ .bytes = bytes, .size = text.length };
	}
	str_fini(&text);
	return true;
}

// Windows makes no mapping of a pipe, nor of an empty file: they are read.
bool file_view_fd(struct file_view *view, int fd, struct err *err)
{
	uint64_t size;
	HANDLE section;
	void *bytes;

	if (!file_is_regular(fd, &size) || size == 0)
		return view_by_reading(view, fd, err);
	if (size > SIZE_MAX)
		return err_set(err, ERR_IO, "too large for this machine's addresses");
	// The view holds the mapping, and the mapping the file: handle and descriptor may be
	// closed. A mapped file cannot be cut shorter here, so there is nothing to watch.
	section = CreateFileMappingW(handle_of(fd), NULL, PAGE_READONLY, 0, 0, NULL);
	bytes = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : NULL;
	if (!bytes)
		failed(GetLastError());
	if (section)
		CloseHandle(section);
	if (!bytes)
		return err_errno(err, errno, "cannot map it");
	*view = (struct file_view){ .bytes = bytes, .size = (size_t)size };
	return true;
}

void file_view_close(struct file_view *view)
{
	ASSERT(view->size == 0 || view->bytes != NULL);
	if (view->size > 0)
		UnmapViewOfFile(view->bytes);
	*view = (struct file_view){ 0 };
}

bool file_read_all(int fd, struct str *out, struct err *err)
{
	char *buffer = mem_alloc(READ_BYTES, 1);
	DWORD got = 0;
	bool ok;

	// A pipe whose other end was closed is "broken" here, where POSIX says that it has ended.
	while ((ok = ReadFile(handle_of(fd), buffer, READ_BYTES, &got, NULL)) && got > 0)
		str_add_bytes(out, buffer, got);
	ok = ok || GetLastError() == ERROR_BROKEN_PIPE || GetLastError() == ERROR_HANDLE_EOF ||
	     failed(GetLastError());
	mem_free(buffer);
	return ok || err_errno(err, errno, "cannot read");
}

// It has a name here, and goes with its handle.
int file_temp(struct err *err)
{
	static _Atomic unsigned serial;
	wchar_t folder[MAX_PATH + 2];
	struct str path = { 0 };
	DWORD count = GetTempPathW(MAX_PATH + 1, folder);
	int fd;

	wide_add(&path, (const uint16_t *)folder, count);
	// Our number and a count: two processes, and two files of one, do not meet. GetTempPathW
	// ends in a backslash.
	str_format(&path, "tidemark-%lu-%u.tmp", GetCurrentProcessId(),
		   atomic_fetch_add(&serial, 1));
	fd = file_open(str_get(&path), FILE_WRITE | FILE_NEW | FILE_VANISHES);
	if (fd < 0)
		err_errno(err, errno, "cannot create %s", str_get(&path));
	str_fini(&path);
	return fd;
}
