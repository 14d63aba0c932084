#include "recorder/exec.h"

#include "recorder/elf64.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/recording.h"
#include "recorder/text.h"

enum {
	EXEC_ON_STACK_BYTES = 4096,
	EXEC_HEADER_BYTES = 1024,
	EXEC_SETUID = 04000,
	EXEC_SETGID = 02000,
	EXEC_GROUP_EXECUTE = 010,
};

struct exec_stat {
	uint64_t device, inode, links;
	uint32_t mode;
	uint8_t rest[256];
};

// Whether the image at `path` will not load the recorder, and why (enum note_exec).
static uint32_t exec_look(const char *path)
{
	uint8_t header[EXEC_HEADER_BYTES];
	struct exec_stat stat = { 0 };
	uint32_t reason = NOTE_EXEC_OK;
	uint64_t program_at;
	uint16_t count;
	long size;
	long fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);

	if (kernel_failed(fd))
		return NOTE_EXEC_OK;
	size = kernel(__NR_read, fd, header, sizeof(header));
	kernel(__NR_fstat, fd, &stat);
	kernel(__NR_close, fd);
	if (stat.mode & EXEC_SETUID ||
	    (stat.mode & (EXEC_SETGID | EXEC_GROUP_EXECUTE)) == (EXEC_SETGID | EXEC_GROUP_EXECUTE))
		reason = NOTE_EXEC_SETUID;
	if (size >= 5 && memcmp(header, "\177ELF\1", 5) == 0)
		return reason ? reason : NOTE_EXEC_32_BIT;
	if (size < 64 || memcmp(header, "\177ELF\2", 5) != 0)
		return reason;
	memcpy(&program_at, header + 32, 8);
	memcpy(&count, header + 56, 2);
	for (uint16_t i = 0; i < count; i++) {
		uint32_t type;

		if (program_at > (uint64_t)size || program_at + 56 > (uint64_t)size)
			return reason; // further than we look
		memcpy(&type, header + program_at, 4);
		if (type == ELF64_INTERPRETER)
			return reason;
		program_at += 56;
	}
	return reason ? reason : NOTE_EXEC_STATIC;
}

// The path of the recorder, as it stands in LD_PRELOAD.
static const char *exec_library(void)
{
	return recording_library() + sizeof("LD_PRELOAD=") - 1;
}

static bool exec_separates(char c)
{
	return c == 0 || c == ':' || c == ' ';
}

// Whether `path` is an entry of the list.
static bool exec_holds(const char *list, const char *path)
{
	while (*list) {
		const char *rest = text_after(list, path);

		if (rest && exec_separates(*rest))
			return true;
		while (!exec_separates(*list))
			list++;
		while (*list && exec_separates(*list))
			list++;
	}
	return false;
}

// The list without the entry `path`, into `out`.
static void exec_remove(char *out, const char *list, const char *path)
{
	char *start = out;

	while (*list) {
		const char *rest = text_after(list, path);
		bool ours = rest && exec_separates(*rest);

		while (!exec_separates(*list)) {
			if (!ours)
				*out++ = *list;
			list++;
		}
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
	bool has_library;
	bool has_session; // ours, or one that the program chose itself
};

static struct exec_environment exec_read(char *const *envp)
{
	struct exec_environment env = { .envp = envp };

	while (envp && envp[env.count])
		env.count++;
	env.preload_at = env.count;
	for (size_t i = 0; i < env.count; i++) {
		const char *value = text_after(envp[i], "LD_PRELOAD=");

		if (value) {
			env.preload_at = i;
			env.has_library = exec_holds(value, exec_library());
		} else if (text_after(envp[i], "TIDEMARK_SESSION=")) {
			env.has_session = true;
		}
	}
	return env;
}

// Room for the new list and for the one string that is made anew.
static size_t exec_bytes(const struct exec_environment *env)
{
	size_t bytes = (env->count + 3) * sizeof(char *) + text_length(recording_library()) + 2;

	if (env->preload_at < env->count)
		bytes += text_length(env->envp[env->preload_at]);
	return bytes;
}

// The environment at `out`, with recorder and session in it, or without the recorder: pointers
// first, then the new LD_PRELOAD.
static const char **exec_write(void *out, const struct exec_environment *env, bool with)
{
	const char **list = out;
	char *text = (char *)(list + env->count + 3);
	const char *old = env->preload_at < env->count
				  ? env->envp[env->preload_at] + sizeof("LD_PRELOAD=") - 1
				  : NULL;
	size_t length = with ? text_length(recording_library()) : sizeof("LD_PRELOAD=") - 1;
	size_t used = 0;

	for (size_t i = 0; i < env->count; i++) {
		if (i != env->preload_at)
			list[used++] = env->envp[i];
	}
	if (with && !env->has_session)
		list[used++] = recording_session();
	memcpy(text, recording_library(), length);
	text[length] = 0;
	if (with && env->has_library) {
		list[used++] = env->envp[env->preload_at];
	} else if (with) {
		if (old && *old) {
			text[length] = ':';
			memcpy(text + length + 1, old, text_length(old) + 1);
		}
		list[used++] = text;
	} else if (old) {
		exec_remove(text + length, old, exec_library());
		if (text[length])
			list[used++] = text;
	}
	list[used] = NULL;
	return list;
}

static void exec_tell(uint32_t reason, const char *path)
{
	uint64_t signals = kernel_block_signals();

	notes_exec(reason, path);
	kernel_restore_signals(signals);
}

long exec_call(const char *path, long argv, char *const *envp)
{
	uint64_t on_stack[EXEC_ON_STACK_BYTES / 8];
	struct exec_environment env;
	void *room = on_stack;
	uint32_t reason;
	size_t bytes;
	bool with;
	long result;

	if (!recording_library()[0] || recording_phase() != RECORDING_ON ||
	    (recording_state->options & SEGMENT_NO_FOLLOW))
		return kernel(__NR_execve, path, argv, envp);
	env = exec_read(envp);
	reason = exec_look(path);
	if (reason == NOTE_EXEC_OK && kernel(__NR_access, exec_library(), 4 /* R_OK */) != 0)
		reason = NOTE_EXEC_NO_LIBRARY;
	if (reason != NOTE_EXEC_OK)
		exec_tell(reason, path);
	// A loader that cannot load the recorder would say so on the program's own stderr.
	with = reason != NOTE_EXEC_NO_LIBRARY && reason != NOTE_EXEC_32_BIT;
	if (with ? env.has_library && env.has_session : !env.has_library)
		return kernel(__NR_execve, path, argv, envp);
	bytes = exec_bytes(&env);
	if (bytes > sizeof(on_stack))
		room = kernel_pages(bytes);
	if (!room)
		return kernel(__NR_execve, path, argv, envp);
	result = kernel(__NR_execve, path, argv, exec_write(room, &env, with));
	if (room != on_stack)
		kernel(__NR_munmap, room, bytes);
	return result;
}
