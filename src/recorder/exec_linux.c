// What a new image needs is in its environment. For example, a program executes /bin/ls with
//
//     PATH=/bin  LD_PRELOAD=/x.so
//
// and what the kernel gets is
//
//     PATH=/bin  TIDEMARK_SESSION=…  LD_PRELOAD=/opt/…/preload/$LIB/libtidemark.so:/x.so
//
// with the texts that stay where they are, and a new list of pointers, on the stack if it is small:
// this may be a vfork child, which has its parent's memory. Before the call, a note says what is
// about to be, and with NOTE_EXEC_OK the collector awaits a hello. If the call comes back, another
// note says that it failed.
#include "recorder/exec_linux.h"

#include "recorder/elf_file.h"
#include "recorder/kernel.h"
#include "recorder/library_linux.h"
#include "recorder/notes.h"
#include "recorder/recording.h"
#include "recorder/sanitizer_linux.h"
#include "recorder/text.h"

enum {
	EXEC_ON_STACK_BYTES = 4096,
	EXEC_SETUID = 04000,
	EXEC_SETGID = 02000,
	EXEC_GROUP_EXECUTE = 010,
	EXEC_CLOEXEC = 0x80000,
	EXEC_EMPTY_PATH = 0x1000, // AT_EMPTY_PATH
	EXEC_FD_PATH_BYTES = 32,
	EXEC_NAME_BYTES = 512,
	EXEC_SESSION_DIGITS = 32,
	EXEC_ENOENT = 2,
	EXEC_E2BIG = 7,
	EXEC_EBADF = 9,
	EXEC_ENOTDIR = 20,
	EXEC_ENAMETOOLONG = 36,
	EXEC_ELOOP = 40,
};

// Whether the interpreter's path, `size` bytes at `at`, is that of musl's linker.
//
// "/lib/ld-musl-x86_64.so.1", for example. It does not have to be within what was read of the file:
// then it is not musl's.
static bool exec_is_musl(const struct elf_file *head, uint64_t at, uint64_t size)
{
	static const char name[] = "/ld-musl-";

	if (at > head->size || size > head->size - at)
		return false;
	for (uint64_t i = 0; i + sizeof(name) - 1 <= size; i++)
		if (memcmp(head->bytes + at + i, name, sizeof(name) - 1) == 0)
			return true;
	return false;
}

// enum note_exec of an ELF file, and which linker it asks for.
//
// Without PT_INTERP the kernel starts the file itself, and no linker loads a library into it.
static uint32_t exec_look_inside(const struct elf_file *head, struct library_image *image)
{
	const struct elf_file_class *class = head->class;
	uint16_t count;
	uint32_t type;
	uint64_t at;

	memcpy(&count, head->bytes + class->program_count_at, sizeof(count));
	for (uint16_t i = 0; i < count; i++) {
		at = elf_file_segment(head, i, &type);
		if (!at)
			return NOTE_EXEC_OK; // further than we look
		if (type == ELF_INTERPRETER) {
			image->musl = exec_is_musl(head,
						   elf_file_number(head, at + class->offset_at),
						   elf_file_number(head, at + class->size_at));
			return NOTE_EXEC_OK;
		}
	}
	return NOTE_EXEC_STATIC;
}

// What is to be another image.
struct exec_ask {
	long number; // of the call
	int folder;  // execveat's, else KERNEL_AT_FDCWD
	const char *path;
	long argv;
	char *const *envp;
	long flags; // execveat's
};

// A descriptor of the file. Or a negative errno.
//
// fexecve gives the file as a descriptor and an empty path; openat has no AT_EMPTY_PATH, so it is
// opened by its name in /proc.
static long exec_open(const struct exec_ask *ask)
{
	char path[EXEC_FD_PATH_BYTES];
	long fd = kernel(__NR_openat, ask->folder, ask->path, EXEC_CLOEXEC, 0);

	if (fd != -EXEC_ENOENT || !(ask->flags & EXEC_EMPTY_PATH) || ask->path[0])
		return fd;
	text_put_fd(path, "/proc/self/fd/", (uint32_t)ask->folder);
	return kernel(__NR_openat, KERNEL_AT_FDCWD, path, EXEC_CLOEXEC, 0);
}

// Whether a call that could not open the file `error` can still execute it.
//
// To open and to execute are different rights: a file may be executable and not readable. Then it
// is not known what it is, and it is taken for one that loads us.
static bool exec_can(long error)
{
	return error != -EXEC_ENOENT && error != -EXEC_ENOTDIR && error != -KERNEL_EFAULT &&
	       error != -EXEC_EBADF && error != -EXEC_ENAMETOOLONG && error != -EXEC_ELOOP;
}

// Whether the file is the dynamic linker itself, called as a program: it has no linker of its own,
// and loads the recorder into what it runs.
static bool exec_is_linker(const char *path, struct library_image *image)
{
	const char *name = path;

	for (const char *at = path; *at; at++)
		name = *at == '/' ? at + 1 : name;
	image->musl |= text_after(name, "ld-musl-") != NULL;
	return image->musl || text_after(name, "ld-linux") || text_after(name, "ld.so");
}

// Whether such a call only asks for something, and runs no program.
static bool exec_only_asks(const struct exec_ask *ask)
{
	static const char *const words[] = { "--verify", "--list", "--help", "--version" };
	const char *const *argv = (const char *const *)ask->argv;

	for (size_t i = 1; argv && argv[0] && argv[i] && text_after(argv[i], "--"); i++)
		for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
			if (text_after(argv[i], words[k]))
				return true;
	return false;
}

#ifdef __NR_getuid32
#define EXEC_NR(name) __NR_##name##32
#else
#define EXEC_NR(name) __NR_##name
#endif

// Whether the file gives rights that its caller does not have.
static bool exec_gives_rights(long fd, const struct kernel_file *file)
{
	return file->mode & EXEC_SETUID ||
	       (file->mode & (EXEC_SETGID | EXEC_GROUP_EXECUTE)) ==
		       (EXEC_SETGID | EXEC_GROUP_EXECUTE) ||
	       (kernel(EXEC_NR(getuid)) != 0 &&
		kernel(__NR_fgetxattr, fd, "security.capability", 0, 0) > 0);
}

// Where the caller's real and effective ids differ, the kernel says to the image what it says to
// one whose file gives rights (AT_SECURE), and a linker loads nothing then that LD_PRELOAD names by
// a path.
static bool exec_ids_differ(void)
{
	return kernel(EXEC_NR(getuid)) != kernel(EXEC_NR(geteuid)) ||
	       kernel(EXEC_NR(getgid)) != kernel(EXEC_NR(getegid));
}

// Whether the image will not load the recorder, and why (enum note_exec). `*can`: there is one that
// has something to tell.
//
// All of this runs in a process that is about to go, which may be a vfork child: nothing is kept,
// and nothing is allocated.
static uint32_t exec_look(const struct exec_ask *ask, struct library_image *image, bool *can)
{
	struct elf_file head = { .size = 0 };
	struct kernel_file file = { 0 };
	uint32_t reason = NOTE_EXEC_OK;
	long size;
	long fd = exec_open(ask);

	*can = !kernel_failed(fd) || exec_can(fd);
	// Under a filter the file is not looked at. But in another root (nspawn's, flatpak's) a
	// loader would complain that the recorder is not there.
	if (kernel_sealed && library_can_ask() && !library_readable(*image))
		return NOTE_EXEC_NO_LIBRARY;
	if (kernel_failed(fd))
		return NOTE_EXEC_OK;
	size = kernel(__NR_read, fd, head.bytes, sizeof(head.bytes));
	kernel_stat((int)fd, &file);
	head.size = size > 0 ? (size_t)size : 0;
	elf_file_init(&head);
	if (head.class) {
		image->bits = head.class->bits;
		image->asan = sanitizer_needed(fd, &head);
		reason = exec_look_inside(&head, image);
	}
	if (reason == NOTE_EXEC_STATIC && exec_is_linker(ask->path, image)) {
		reason = NOTE_EXEC_OK;
		*can = !exec_only_asks(ask);
	}
	if (exec_gives_rights(fd, &file) || (reason == NOTE_EXEC_OK && exec_ids_differ()))
		reason = NOTE_EXEC_SETUID;
	kernel(__NR_close, fd);
	if (reason == NOTE_EXEC_OK && !library_exists(*image))
		reason = NOTE_EXEC_32_BIT;
	if (reason == NOTE_EXEC_OK && !library_readable(*image))
		reason = NOTE_EXEC_NO_LIBRARY;
	return reason;
}

static bool exec_separates(char c)
{
	return c == 0 || c == ':' || c == ' ';
}

// How long the first entry of the list is.
static size_t exec_entry_length(const char *list)
{
	size_t length = 0;

	while (!exec_separates(list[length]))
		length++;
	return length;
}

// Whether `entry` is in the list, and, in `*ours`, whether any entry means the recorder.
//
// LD_PRELOAD's entries are separated by colons or spaces.
static bool exec_holds(const char *list, const char *entry, bool *ours)
{
	bool found = false;

	while (*list) {
		size_t length = exec_entry_length(list);

		found |= length && length == text_length(entry) && memcmp(list, entry, length) == 0;
		*ours |= library_is_ours(list, length);
		list += length;
		while (*list && exec_separates(*list))
			list++;
	}
	return found;
}

// The list without what means the recorder, into `out`.
//
// `out` has room for all of `list`. A separator after what was removed goes too, and so does one at
// the end.
static void exec_remove(char *out, const char *list)
{
	char *start = out;

	while (*list) {
		size_t length = exec_entry_length(list);
		bool ours = library_is_ours(list, length);

		if (!ours) {
			memcpy(out, list, length);
			out += length;
		}
		list += length;
		while (*list && exec_separates(*list)) {
			if (!ours)
				*out++ = *list;
			list++;
		}
	}
	while (out > start && exec_separates(out[-1]))
		out--;
	*out = 0;
}

// What an environment has of what we need.
struct exec_environment {
	char *const *envp;
	size_t count;
	size_t preload_at; // index of LD_PRELOAD, or count
	size_t session_at; // index of TIDEMARK_SESSION where that is to be replaced, or count
	const char *entry; // of LD_PRELOAD, that the image needs
	bool has_library;  // it is there
	bool has_ours;     // that, or one for images of another kind
	bool has_session;  // one that a recording may have
	bool elsewhere;    // and it is not ours: the program chose it
	bool asan;         // LD_PRELOAD has a shared AddressSanitizer
	bool asan_behind;  // ASAN_OPTIONS let such a one come behind us
	bool only_lists;   // the linker is to list the libraries, and no more
};

// Whether a recording may have this name: "tidemark-" or nothing, and digits.
//
// A name that is not one (an old recording's, a person's) is replaced by ours; one that may be a
// recording's is respected: the program has chosen it.
static bool exec_is_session(const char *name)
{
	const char *at = text_after(name, "tidemark-");
	size_t count = 0;

	for (at = at ? at : name; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
		count++;
	return *at == 0 && count == EXEC_SESSION_DIGITS;
}

// Whether the `bytes` there can be read; the page of the last is remembered. Under a filter that is
// believed.
static bool exec_can_read(const void *at, size_t bytes, uintptr_t *page)
{
	const uintptr_t mask = ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t first = (uintptr_t)at & mask, last = ((uintptr_t)at + bytes - 1) & mask;

	if (likely(last == *page && first == last))
		return true;
	if (!kernel_sealed && (!kernel_can_read(first) || !kernel_can_read(last)))
		return false;
	*page = last;
	return true;
}

// Whether the environment can be read as a whole. One that cannot is an error of the program's,
// which the kernel will tell it.
static bool exec_is_readable(char *const *envp)
{
	uintptr_t list_page = UINTPTR_MAX, text_page = UINTPTR_MAX; // none

	for (; envp; envp++) {
		if (!exec_can_read(envp, sizeof(*envp), &list_page))
			return false;
		if (!*envp)
			return true;
		for (const char *at = *envp;; at++) {
			if (!exec_can_read(at, 1, &text_page))
				return false;
			if (!*at)
				break;
		}
	}
	return true;
}

// One pass over the environment; nothing is copied, and the texts are the program's.
static struct exec_environment exec_read(char *const *envp, struct library_image image)
{
	struct exec_environment env = { .envp = envp, .entry = library_entry(image) };

	while (envp && envp[env.count])
		env.count++;
	env.preload_at = env.session_at = env.count;
	for (size_t i = 0; i < env.count; i++) {
		const char *preload = text_after(envp[i], "LD_PRELOAD=");
		const char *session = text_after(envp[i], "TIDEMARK_SESSION=");

		if (preload) {
			env.preload_at = i;
			env.has_library = exec_holds(preload, env.entry, &env.has_ours);
			env.asan = sanitizer_listed(preload);
		} else if (session) {
			env.has_session = exec_is_session(session);
			env.session_at = env.has_session ? env.count : i;
			env.elsewhere = env.has_session &&
					!text_equal(envp[i], recording_session());
		} else if (text_after(envp[i], "ASAN_OPTIONS=")) {
			env.asan_behind = sanitizer_lets(envp[i]);
		} else if (text_after(envp[i], "LD_TRACE_LOADED_OBJECTS=")) {
			env.only_lists = true;
		}
	}
	return env;
}

// Room for the new list and for the one string that is made anew.
//
// Three pointers more than there are strings: the session, LD_PRELOAD, and NULL.
static size_t exec_bytes(const struct exec_environment *env)
{
	size_t bytes = (env->count + 3) * sizeof(char *) + sizeof("LD_PRELOAD=") +
		       text_length(env->entry) + 2;

	if (env->preload_at < env->count)
		bytes += text_length(env->envp[env->preload_at]);
	return bytes;
}

// The environment at `out`, with recorder and session in it, or without the recorder: pointers
// first, then the new LD_PRELOAD.
//
// Where the program's LD_PRELOAD has the right library already, its string stays. Else the library
// comes first, before what the program wants, and other libraries of ours are removed.
static const char **exec_write(void *out, const struct exec_environment *env, bool with)
{
	const char **list = out;
	char *text = (char *)(list + env->count + 3);
	const char *old = env->preload_at < env->count
				  ? env->envp[env->preload_at] + sizeof("LD_PRELOAD=") - 1
				  : NULL;
	size_t length = sizeof("LD_PRELOAD=") - 1;
	size_t used = 0;

	for (size_t i = 0; i < env->count; i++) {
		if (i != env->preload_at && i != env->session_at)
			list[used++] = env->envp[i];
	}
	if (with && !env->has_session)
		list[used++] = recording_session();
	memcpy(text, "LD_PRELOAD=", length + 1);
	if (with && env->has_library) {
		list[used++] = env->envp[env->preload_at];
	} else if (with) {
		memcpy(text + length, env->entry, text_length(env->entry) + 1);
		length += text_length(env->entry);
		if (old && *old) {
			exec_remove(text + length + 1, old);
			text[length] = text[length + 1] ? ':' : 0;
		}
		list[used++] = text;
	} else if (old) {
		exec_remove(text + length, old);
		if (text[length])
			list[used++] = text;
	}
	list[used] = NULL;
	return list;
}

// In a vfork child, which has its parent's memory.
static bool exec_is_vfork_child(void)
{
	return recording_state && kernel_process_id() != recording_state->pid;
}

// Signals are blocked while a note is written. A child that has its parent's memory has its thread
// variables too, and the parent may run beside it (clone with CLONE_VM alone), or go on when it was
// killed here: so what is counted in them is left alone.
static uint64_t exec_begin_note(void)
{
	return exec_is_vfork_child() ? kernel_mask_signals() : kernel_block_signals();
}

static void exec_end_note(uint64_t signals)
{
	if (exec_is_vfork_child())
		kernel_unmask_signals(signals);
	else
		kernel_restore_signals(signals);
}

static void exec_tell(uint32_t reason, const char *path)
{
	uint64_t signals = exec_begin_note();

	notes_exec(reason, path);
	exec_end_note(signals);
}

static void exec_tell_failed(long error)
{
	uint64_t signals = exec_begin_note();

	notes_exec_failed((uint32_t)-error);
	exec_end_note(signals);
}

// A vfork child shall leave its parent's gate as it is.
//
// kernel_call6_bare: in a vfork child kernel_gate is the parent's word, and the parent goes on with
// it when the child has its image.
static long exec_make(const struct exec_ask *ask, const void *envp)
{
	const bool at = ask->number == __NR_execveat;
	const long words[6] = { at ? ask->folder : (long)ask->path,
				at ? (long)ask->path : ask->argv, at ? ask->argv : (long)envp,
				at ? (long)envp : 0, ask->flags };

	if (exec_is_vfork_child())
		return kernel_call6_bare(ask->number, words[0], words[1], words[2], words[3],
					 words[4], 0);
	return kernel_call6(ask->number, words[0], words[1], words[2], words[3], words[4], 0);
}

// With the environment as exec_write makes it. Returns if it fails.
//
// 4 KiB on the stack are enough for several hundred variables. More are pages of their own, which
// go with the old image, or are unmapped if the call fails.
static long exec_make_anew(const struct exec_ask *ask, const struct exec_environment *env,
			   bool with)
{
	uint64_t on_stack[EXEC_ON_STACK_BYTES / 8];
	size_t bytes = exec_bytes(env);
	void *room = bytes > sizeof(on_stack) ? kernel_pages(bytes) : on_stack;
	long result;

	if (!room)
		return exec_make(ask, ask->envp);
	result = exec_make(ask, exec_write(room, env, with));
	if (room != on_stack)
		kernel(__NR_munmap, room, bytes);
	return result;
}

// With what the new image needs of us in the environment, or without what it cannot use.
static long exec_make_with(const struct exec_ask *ask, const struct exec_environment *env,
			   uint32_t reason)
{
	// A loader that cannot load the recorder would say so on the program's own stderr, and
	// AddressSanitizer refuses to come behind it.
	bool with = reason != NOTE_EXEC_NO_LIBRARY && reason != NOTE_EXEC_32_BIT &&
		    reason != NOTE_EXEC_ASAN;

	if (with ? env->has_library && env->has_session : !env->has_ours)
		return exec_make(ask, ask->envp);
	return exec_make_anew(ask, env, with);
}

// What the image is called: its path or, where that begins at a descriptor, what that is of.
static void exec_tell_ask(uint32_t reason, const struct exec_ask *ask)
{
	char name[EXEC_NAME_BYTES], link[EXEC_FD_PATH_BYTES];
	size_t length = text_length(ask->path);
	long got;

	if (ask->folder == KERNEL_AT_FDCWD || ask->path[0] == '/') {
		exec_tell(reason, ask->path);
		return;
	}
	text_put_fd(link, "/proc/self/fd/", (uint32_t)ask->folder);
	got = kernel(__NR_readlink, link, name, sizeof(name) / 2);
	got = kernel_failed(got) ? 0 : got;
	name[got] = 0;
	if (length && length < sizeof(name) / 2 - 1) {
		name[got] = '/';
		memcpy(name + got + 1, ask->path, length + 1);
	}
	exec_tell(reason, name);
}

// There is no room for arguments, environment and what we have in it: the image goes without.
//
// E2BIG came of our own entry; the program would not have got it. So it is called again as the
// program wanted, and the image is not recorded, which is said.
static long exec_make_without(const struct exec_ask *ask, struct exec_environment *env, bool tells)
{
	if (tells) {
		exec_tell_failed(-EXEC_E2BIG);
		exec_tell_ask(NOTE_EXEC_NO_ROOM, ask);
	}
	for (size_t i = 0; i < env->count; i++)
		if (text_after(env->envp[i], "TIDEMARK_SESSION="))
			env->session_at = i;
	return exec_make_anew(ask, env, false);
}

// ---- Static programs ----------------------------------------------------------------------------

enum {
	EXEC_SET_PTRACER = 0x59616d61, // PR_SET_PTRACER
	EXEC_NOSIGNAL = 0x4000,        // MSG_NOSIGNAL
};

// Nothing is loaded into one: the collector is asked to bring the recorder in, as soon as it is
// there. Returns why not (enum note_exec); `*line`: the connection, which ends with the exec.
static COLD uint32_t exec_ask_entry(const struct exec_ask *ask, long *line)
{
	const size_t bytes = offsetof(struct segment_hello, exe); // all but the last, large field
	struct segment_welcome welcome;
	struct segment_hello hello; // as large as what exec_make_anew takes
	long file;

	*line = -1;
	if (kernel_sealed)
		return NOTE_EXEC_STATIC;
	file = exec_open(ask);
	if (kernel_failed(file))
		return NOTE_EXEC_STATIC;
	// Who is not our ancestor may trace us only if we say so (Yama).
	kernel(__NR_prctl, EXEC_SET_PTRACER, recording_state->segment->collector_pid, 0, 0, 0);
	memset(&hello, 0, bytes);
	hello.magic = SEGMENT_MAGIC;
	hello.version = SEGMENT_VERSION;
	hello.start = SEGMENT_START_ENTER;
	hello.pid = kernel_process_id();
	hello.fork_lane = kernel_thread_id();
	hello.parent_image = (uint32_t)file;
	*line = recording_connect();
	memset(&welcome, 0, sizeof(welcome));
	welcome.refused = NOTE_EXEC_STATIC;
	if (!kernel_failed(*line) &&
	    kernel(__NR_sendto, *line, &hello, bytes, EXEC_NOSIGNAL, 0, 0) == (long)bytes)
		kernel(__NR_read, *line, &welcome, sizeof(welcome));
	kernel(__NR_close, file);
	if (welcome.refused && !kernel_failed(*line)) {
		kernel(__NR_close, *line);
		*line = -1;
	}
	return welcome.refused;
}

// Nothing was executed: the collector lets us go.
static COLD void exec_end_entry(long line)
{
	char byte = 0;

	if (kernel_failed(line))
		return;
	if (kernel(__NR_sendto, line, &byte, 1, EXEC_NOSIGNAL, 0, 0) == 1)
		kernel(__NR_read, line, &byte, 1);
	kernel(__NR_close, line);
}

static long exec_ask_call(const struct exec_ask *ask)
{
	struct library_image image = { 0 };
	struct exec_environment env;
	uint32_t reason;
	long result, line = -1;
	bool tells;

	// A child that comes from a bare system call, and has allocated nothing yet.
	if (recording_phase() == RECORDING_NEW && recording_state)
		recording_begin();
	if (!library_entry(image)[0] || recording_phase() != RECORDING_ON ||
	    (recording_state->options & SEGMENT_NO_FOLLOW) || !exec_is_readable(ask->envp))
		return exec_make(ask, ask->envp);
	reason = exec_look(ask, &image, &tells);
	env = exec_read(ask->envp, image);
	if (reason == NOTE_EXEC_STATIC)
		reason = exec_ask_entry(ask, &line);
	if (reason == NOTE_EXEC_OK && env.elsewhere)
		reason = NOTE_EXEC_ELSEWHERE;
	if (reason == NOTE_EXEC_OK && (image.asan || env.asan) && !env.asan_behind)
		reason = NOTE_EXEC_ASAN;
	tells &= !env.only_lists;
	if (tells)
		exec_tell_ask(reason, ask);
	result = exec_make_with(ask, &env, reason);
	if (result == -EXEC_E2BIG)
		result = exec_make_without(ask, &env, tells);
	exec_end_entry(line);
	if (tells)
		exec_tell_failed(result);
	return result;
}

bool exec_is_call(uint32_t number)
{
	return number == __NR_execve || number == __NR_execveat;
}

// execveat has a word more in front, the folder: all that both have is one further on in it.
long exec_call(long number, const long words[6])
{
	bool at = number == __NR_execveat;
	struct exec_ask ask = {
		.number = number,
		.folder = at ? (int)words[0] : KERNEL_AT_FDCWD,
		.path = (const char *)words[at],
		.argv = words[at + 1],
		.envp = (char *const *)words[at + 2],
		.flags = at ? words[4] : 0,
	};

	return exec_ask_call(&ask);
}
