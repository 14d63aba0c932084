#include "recorder/exec.h"

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
	PT_INTERP = 3,
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
	if (size < 64 || memcmp(header, "\177ELF\2", 5) != 0)
		return reason;
	memcpy(&program_at, header + 32, 8);
	memcpy(&count, header + 56, 2);
	for (uint16_t i = 0; i < count; i++) {
		uint32_t type;

		if (program_at > (uint64_t)size || program_at + 56 > (uint64_t)size)
			return reason; // further than we look
		memcpy(&type, header + program_at, 4);
		if (type == PT_INTERP)
			return reason;
		program_at += 56;
	}
	return reason ? reason : NOTE_EXEC_STATIC;
}

static bool exec_holds(const char *list, const char *path)
{
	size_t length = text_length(path);

	for (; *list; list++) {
		const char *rest = text_after(list, path);

		if (rest && (*rest == 0 || *rest == ':' || *rest == ' '))
			return true;
	}
	return length == 0;
}

// What is missing in an environment.
struct exec_environment {
	size_t count;
	size_t preload_at; // index of LD_PRELOAD, or count
	bool has_library;
	bool has_session;
};

static struct exec_environment exec_read(char *const *envp)
{
	struct exec_environment env = { 0 };

	env.preload_at = (size_t)-1;
	for (; envp && envp[env.count]; env.count++) {
		const char *value = text_after(envp[env.count], "LD_PRELOAD=");

		if (value) {
			env.preload_at = env.count;
			env.has_library =
				exec_holds(value, recording_library() + sizeof("LD_PRELOAD=") - 1);
		} else if (text_equal(envp[env.count], recording_session())) {
			env.has_session = true;
		}
	}
	return env;
}

// The new environment at `out`: pointers first, then the one string that is ours.
static const char **exec_write(void *out, const struct exec_environment *env, char *const *envp)
{
	const char **list = out;
	size_t used = 0;
	char *text = (char *)(list + env->count + 3);

	for (size_t i = 0; i < env->count; i++) {
		if (text_after(envp[i], "TIDEMARK_SESSION=") ||
		    (i == env->preload_at && !env->has_library))
			continue;
		list[used++] = envp[i];
	}
	list[used++] = recording_session();
	if (!env->has_library && env->preload_at == (size_t)-1) {
		list[used++] = recording_library();
	} else if (!env->has_library) {
		const char *old = text_after(envp[env->preload_at], "LD_PRELOAD=");
		size_t length = text_length(recording_library());

		list[used++] = text;
		memcpy(text, recording_library(), length);
		text[length] = ':';
		memcpy(text + length + 1, old, text_length(old) + 1);
	}
	list[used] = NULL;
	return list;
}

static size_t exec_bytes(const struct exec_environment *env, char *const *envp)
{
	size_t bytes = (env->count + 3) * sizeof(char *) + text_length(recording_library()) + 2;

	if (env->preload_at != (size_t)-1)
		bytes += text_length(envp[env->preload_at]);
	return bytes;
}

long exec_call(const char *path, long argv, char *const *envp)
{
	uint64_t on_stack[EXEC_ON_STACK_BYTES / 8];
	struct exec_environment env;
	void *room = on_stack;
	size_t bytes;
	uint64_t signals;
	long result;

	if (!recording_library()[0] || recording_phase() != RECORDING_ON ||
	    (recording_state->options & SEGMENT_NO_FOLLOW))
		return kernel(__NR_execve, path, argv, envp);
	if (exec_look(path) != NOTE_EXEC_OK) {
		signals = kernel_block_signals();
		notes_exec(exec_look(path), path);
		kernel_restore_signals(signals);
	}
	env = exec_read(envp);
	if (env.has_library && env.has_session)
		return kernel(__NR_execve, path, argv, envp);
	bytes = exec_bytes(&env, envp);
	if (bytes > sizeof(on_stack))
		room = kernel_pages(bytes);
	if (!room)
		return kernel(__NR_execve, path, argv, envp);
	result = kernel(__NR_execve, path, argv, exec_write(room, &env, envp));
	if (room != on_stack)
		kernel(__NR_munmap, room, bytes);
	return result;
}
