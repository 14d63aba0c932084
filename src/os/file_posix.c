// What is viewed and cannot be mapped (a pipe, a file of /proc, which says that it has 0 bytes) is
// read into pages that are given back like a mapping, so that who closes a view need not know.
//
// For example, `tidemark report <(zcat app.tide.gz)`: the path is a pipe, so file_view_open reads
// it to its end into anonymous pages, and file_view_close gives those back as it would a mapping.
// Of a file that is cut while it is mapped, mapped.h has the rest: reading beyond its end is
// said, and ends nothing.
#include "os/file.h"

#include "base/mem.h"
#include "os/mapped.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };

// What an empty view shows: an address that is no memory to give back.
static const uint8_t nothing[1];

// A file in a folder that others may read may be read by them. So it has the rights of its folder,
// but those to run (0111), which on a folder mean that one may enter. As root it is also given to
// the folder's owner; where that fails the group's rights go, since it would be another group.
static void share(int folder, int fd)
{
	struct stat status;

	if (fstat(folder, &status) != 0)
		return;
	if (geteuid() == 0 && fchown(fd, status.st_uid, status.st_gid) != 0)
		status.st_mode &= ~(mode_t)0070;
	fchmod(fd, status.st_mode & 0666);
}

int file_open_in(int folder, const char *name, unsigned how)
{
	// Without O_NONBLOCK, opening a FIFO would wait for somebody to write to it.
	// O_NOCTTY: a terminal that is opened as a file must not become the one that controls us.
	// O_WRONLY waits for a reader of a FIFO, as who names one expects.
	int flags = O_CLOEXEC | (how & FILE_WRITE        ? O_RDWR
				 : how & FILE_ONLY_WRITE ? O_WRONLY
							 : O_RDONLY | O_NONBLOCK | O_NOCTTY);
	int fd;

	ASSERT(!(how & FILE_WRITE && how & FILE_ONLY_WRITE));
	ASSERT(!(how & FILE_EMPTY) || how & (FILE_WRITE | FILE_ONLY_WRITE));
	if (how & FILE_NEW)
		flags |= O_CREAT | O_EXCL;
	if (how & FILE_CREATE)
		flags |= O_CREAT;
	if (how & FILE_EMPTY)
		flags |= O_TRUNC;
	// What is to have its folder's rights is private until it has them.
	fd = openat(folder, name, flags, how & (FILE_PRIVATE | FILE_AS_FOLDER) ? 0600 : 0666);
	if (fd >= 0 && how & FILE_AS_FOLDER)
		share(folder, fd);
	// The name goes at once: whatever ends us, nothing is left.
	if (fd >= 0 && how & FILE_VANISHES)
		unlinkat(folder, name, 0);
	return fd;
}

int file_open(const char *path, unsigned how)
{
	return file_open_in(AT_FDCWD, path, how);
}

int file_open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Not waited for: -1 and EWOULDBLOCK where another has it.
static int lock(int fd)
{
	// Any other error is a file system without locks, which lets everybody on.
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 &&
	    (errno == EWOULDBLOCK || errno == EINTR)) {
		close(fd);
		errno = EWOULDBLOCK;
		return -1;
	}
	return fd;
}

int file_lock_folder(const char *path)
{
	return lock(file_open_folder(path));
}

int file_lock(const char *path)
{
	return lock(file_open(path, FILE_READ));
}

bool file_remove_in(int folder, const char *name)
{
	return unlinkat(folder, name, 0) == 0;
}

bool file_rename_in(int folder, const char *from, const char *to)
{
	return renameat(folder, from, folder, to) == 0;
}

bool file_close(int fd)
{
	return fd < 0 || close(fd) == 0;
}

// The descriptor `fd` is the other file from here on; what was open there is closed.
void file_become(int fd, int other)
{
	dup3(other, fd, O_CLOEXEC);
}

// A short read is not the end: only 0 bytes are.
ptrdiff_t file_read_at(int fd, void *bytes, size_t size, uint64_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, (char *)bytes + done, size - done, (off_t)(at + done));

		// For example 10 bytes asked and the file ends after 7: a read of 7, then one of 0,
		// and 7 are returned.
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	ASSERT(done <= size);
	return (ptrdiff_t)done;
}

ptrdiff_t file_write_some(int fd, const void *bytes, size_t size)
{
	return write(fd, bytes, size);
}

// The place to write at moves along, so the next write goes to the new end.
bool file_cut(int fd, uint64_t size)
{
	return ftruncate(fd, (off_t)size) == 0 && lseek(fd, (off_t)size, SEEK_SET) >= 0;
}

// A lock of the open file, not of the process: copies of the descriptor may be closed.
void file_claim(int fd)
{
	// From 0, with length 0: the whole file, however long it gets. It keeps none from reading
	// or writing who does not ask.
	struct flock lock = { .l_type = F_WRLCK };

	fcntl(fd, F_OFD_SETLK, &lock);
}

// The lock is asked for and not taken, so that asking keeps no other out.
bool file_is_claimed(int fd)
{
	// A lock to read conflicts with the writer's lock alone, so that two who ask do not see
	// each other.
	struct flock lock = { .l_type = F_RDLCK };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// ENOLCK: a file system without locks (some network ones). It counts as held, since to refuse all
// work there would help less.
bool file_hold(int fd, bool alone)
{
	return flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno == ENOLCK;
}

// Of its contents, not of its name or rights.
uint64_t file_changed_ns(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return 0;
	return (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
}

bool file_reserve(int fd, uint64_t at, uint64_t size)
{
	return fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)size) == 0;
}

bool file_is_full(int number)
{
	// A full disk, the user's share of it, and the limit of a file's size (ulimit -f).
	return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

bool file_is_regular(int fd, uint64_t *size)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	*size = (uint64_t)status.st_size;
	return true;
}

uint64_t file_limit(void)
{
	// A write beyond it would be SIGXFSZ, which ends a process; who writes a trace stops
	// before.
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

enum file_kind file_look(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return FILE_IS_MISSING;
	if (S_ISREG(status.st_mode))
		return FILE_IS_REGULAR;
	return S_ISDIR(status.st_mode) ? FILE_IS_FOLDER : FILE_IS_OTHER;
}

bool file_may_write(const char *path)
{
	return access(path, W_OK) == 0;
}

bool file_remove(const char *path)
{
	return unlink(path) == 0;
}

// Without `replace` in one step where the kernel can, so that two who rename at once do not both
// succeed.
bool file_rename(const char *from, const char *to, bool replace)
{
	struct stat ignored;

	if (replace)
		return rename(from, to) == 0;
	// The old call would replace what came there between a look and the renaming.
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	// A file system that cannot do it in one step.
	if (lstat(to, &ignored) == 0) {
		errno = EEXIST;
		return false;
	}
	return rename(from, to) == 0;
}

bool file_make_folder(const char *path, bool ours)
{
	return mkdir(path, ours ? 0700 : 0777) == 0;
}

bool file_remove_folder(const char *path)
{
	return rmdir(path) == 0;
}

// Times alone: who looks for what was used last goes by them.
bool file_touch(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

// Where the groups differ, the group's rights would let in another group: they are taken away.
void file_let_in(int fd, const char *path)
{
	struct stat from, is;

	// A file that is gone lets in none: `fd` stays as private as it was made.
	if (stat(path, &from) != 0 || fstat(fd, &is) != 0)
		return;
	if (from.st_gid != is.st_gid)
		from.st_mode &= ~(mode_t)0070;
	fchmod(fd, from.st_mode & 0666);
}

bool file_share_folder(const char *path, const char *file)
{
	// Not through a link: it may lead to a folder that is none of ours.
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat from, is;
	mode_t mode;
	bool good;

	if (fd < 0)
		return false;
	good = stat(file, &from) == 0 && fstat(fd, &is) == 0;
	if (good) {
		// For example a file of 0640 gives 0740, and who may read may look into it: 0750.
		// The execute bits of the file say nothing here.
		mode = 0700 | (from.st_mode & 0066);
		mode |= (mode & 0044) >> 2; // who may read may look into it
		if ((from.st_uid != is.st_uid || from.st_gid != is.st_gid) &&
		    fchown(fd, geteuid() == 0 ? from.st_uid : (uid_t)-1, from.st_gid) != 0)
			mode &= ~(mode_t)0070; // another group than the file's
		good = (is.st_mode & 07777) == mode || fchmod(fd, mode) == 0;
	}
	close(fd);
	return good;
}

// An entry that is made or removed meanwhile may be told or not.
bool file_list(const char *path, void (*tell)(void *context, const char *name), void *context)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	if (!folder)
		return false;
	while ((entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			tell(context, entry->d_name);
	closedir(folder);
	return true;
}

bool file_is_rooted(const char *path)
{
	return *path == '/';
}

char *file_absolute(const char *path)
{
	char *found = realpath(path, NULL);
	char *whole = mem_copy_text(found ? found : path);

	free(found);
	return whole;
}

const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// XDG_CACHE_HOME, or .cache in the home, which is made where it is missing.
char *file_caches(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct str path = { 0 };

	if (cache && *cache)
		return mem_copy_text(cache);
	if (!home || !*home)
		return NULL;
	// Only this last part is made: a home that is not there is none of ours to make.
	str_format(&path, "%s/.cache", home);
	mkdir(str_get(&path), 0700);
	return str_take(&path);
}

bool file_view_open(struct file_view *view, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	ok = file_view_fd(view, fd, err);
	close(fd);
	return ok || err_wrap(err, "cannot read %s", path);
}

// "e": closed on exec, as all that is opened here.
FILE *file_stream(const char *path, const char *mode)
{
	char ours[8];

	// At most 6 letters, "e" and the end.
	ASSERT(strlen(mode) < sizeof ours - 1);
	snprintf(ours, sizeof ours, "%se", mode);
	return fopen(path, ours);
}

FILE *file_stream_copy(int fd, const char *mode)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *stream = copy >= 0 ? fdopen(copy, mode) : NULL;

	if (!stream && copy >= 0)
		close(copy);
	return stream;
}

// Read what cannot be mapped into memory that is given back like a mapping.
static bool view_by_reading(struct file_view *view, int fd, struct err *err)
{
	struct str text = { 0 };
	void *bytes;

	if (!file_read_all(fd, &text, err)) {
		str_fini(&text);
		return false;
	}
	if (text.length == 0) {
		str_fini(&text);
		*view = (struct file_view){ .bytes = nothing };
		return true;
	}
	// Copied once more, into pages of their own: file_view_close must be able to unmap either
	// kind, and what the allocator gave cannot be.
	bytes = mmap(NULL, text.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED) {
		str_fini(&text);
		return err_errno(err, errno, "cannot map memory");
	}
	memcpy(bytes, text.text, text.length);
	*view = (struct file_view){ .bytes = bytes, .size = text.length };
	str_fini(&text);
	return true;
}

// A mapped file that is cut shorter while it is read gives zeros and no signal (mapped.h).
bool file_view_fd(struct file_view *view, int fd, struct err *err)
{
	struct stat status;
	void *bytes;

	if (fstat(fd, &status) != 0)
		return err_errno(err, errno, "cannot find its size");
	if (S_ISDIR(status.st_mode))
		return err_set(err, ERR_IO, "it is a directory");
	// Files of /proc are regular and say that they are empty.
	// Of /proc/self/maps, say, st_size is 0 and the text has some kilobytes.
	if (!S_ISREG(status.st_mode) || status.st_size == 0)
		return view_by_reading(view, fd, err);
	if ((uint64_t)status.st_size > SIZE_MAX)
		return err_set(err, ERR_IO, "too large for this machine's addresses");
	// Private, and only read: what another process writes into the file may be seen or not.
	// Readers of traces check sums, so a change is found.
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_errno(err, errno, "cannot map it");
	ASSERT(bytes != NULL && status.st_size > 0);
	mapped_watch(bytes, (size_t)status.st_size);
	*view = (struct file_view){ .bytes = bytes, .size = (size_t)status.st_size };
	return true;
}

void file_view_close(struct file_view *view)
{
	ASSERT(view->size == 0 || view->bytes != NULL);
	if (view->size > 0) {
		mapped_forget(view->bytes);
		munmap((void *)view->bytes, view->size);
	}
	*view = (struct file_view){ 0 };
}

bool file_read_all(int fd, struct str *out, struct err *err)
{
	char *buffer = mem_alloc(READ_BYTES, 1);
	ssize_t got;

	for (;;) {
		// A file that grows while it is read is read to where it ends at the last call.
		got = read(fd, buffer, READ_BYTES);
		if (got > 0)
			str_add_bytes(out, buffer, (size_t)got);
		else if (got == 0 || errno != EINTR)
			break;
	}
	mem_free(buffer);
	return got == 0 || err_errno(err, errno, "cannot read");
}

// For file systems that know no file without a name.
static int temp_by_unlinking(const char *folder, struct err *err)
{
	struct str path = { 0 };
	int fd;

	str_format(&path, "%s/tidemark-XXXXXX", folder);
	fd = mkostemp(path.text, O_CLOEXEC);
	if (fd < 0)
		err_errno(err, errno, "cannot create a temporary file in %s", folder);
	else
		unlink(path.text);
	str_fini(&path);
	return fd;
}

// A file without a name cannot be left behind. Where the file system knows none, it has a name for
// a moment.
int file_temp(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	// An empty variable means the same as none, as for the shell's own tools.
	if (!folder || !*folder)
		folder = "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	return fd >= 0 ? fd : temp_by_unlinking(folder, err);
}
