#include "recorder/exec.h"

#include "recorder/elf.h"
#include "recorder/kernel.h"
#include "recorder/library.h"
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

// What stands where in the headers of a file of either class.
struct exec_class {
	uint32_t bits;
	uint32_t program_at, program_count_at, program_bytes; // in the header
	uint32_t offset_at, size_at;                          // in a program header
};

static const struct exec_class exec_classes[] = {
	{ .bits = 64,
	  .program_at = 32,
	  .program_count_at = 56,
	  .program_bytes = 56,
	  .offset_at = 8,
	  .size_at = 32 },
	{ .bits = 32,
	  .program_at = 28,
	  .program_count_at = 44,
	  .program_bytes = 32,
	  .offset_at = 4,
	  .size_at = 16 },
};

// The beginning of a file.
struct exec_head {
	uint8_t bytes[EXEC_HEADER_BYTES];
	size_t size;
};

// A number in it as wide as an address; 0 where that lies further than we look.
static uint64_t exec_number(const struct exec_head *head, const struct exec_class *class,
			    uint64_t at)
{
	uint64_t value = 0;

	if (at <= head->size && class->bits / 8 <= head->size - at)
		memcpy(&value, head->bytes + at, class->bits / 8);
	return value;
}

// Whether the interpreter's path, `size` bytes at `at`, is that of musl's linker.
static bool exec_is_musl(const struct exec_head *head, uint64_t at, uint64_t size)
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
static uint32_t exec_look_inside(const struct exec_head *head, const struct exec_class *class,
				 struct library_image *image)
{
	uint64_t at = exec_number(head, class, class->program_at);
	uint16_t count = 0;

	memcpy(&count, head->bytes + class->program_count_at, 2);
	for (uint16_t i = 0; i < count; i++, at += class->program_bytes) {
		uint32_t type;

		if (at > head->size || class->program_bytes > head->size - at)
			return NOTE_EXEC_OK; // further than we look
		memcpy(&type, head->bytes + at, 4);
		if (type == ELF_INTERPRETER) {
			image->musl = exec_is_musl(head,
						   exec_number(head, class, at + class->offset_at),
						   exec_number(head, class, at + class->size_at));
			return NOTE_EXEC_OK;
		}
	}
	return NOTE_EXEC_STATIC;
}

// Whether the image at `path` will not load the recorder, and why (enum note_exec).
static uint32_t exec_look(const char *path, struct library_image *image)
{
	const struct exec_class *class = NULL;
	struct exec_head head = { .size = 0 };
	struct kernel_file file = { 0 };
	uint32_t reason = NOTE_EXEC_OK;
	long size;
	long fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);

	if (kernel_failed(fd))
		return NOTE_EXEC_OK;
	size = kernel(__NR_read, fd, head.bytes, sizeof(head.bytes));
	kernel_stat((int)fd, &file);
	kernel(__NR_close, fd);
	head.size = size > 0 ? (size_t)size : 0;
	if (head.size >= 64 && memcmp(head.bytes, "\177ELF", 4) == 0)
		class = head.bytes[4] == 2 ? &exec_classes[0] : &exec_classes[1];
	if (class) {
		image->bits = class->bits;
		reason = exec_look_inside(&head, class, image);
	}
	if (file.mode & EXEC_SETUID ||
	    (file.mode & (EXEC_SETGID | EXEC_GROUP_EXECUTE)) == (EXEC_SETGID | EXEC_GROUP_EXECUTE))
		reason = NOTE_EXEC_SETUID;
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
	const char *entry; // of LD_PRELOAD, that the image needs
	bool has_library;  // it is there
	bool has_ours;     // that, or one for images of another kind
	bool has_session;  // ours, or one that the program chose itself
};

static struct exec_environment exec_read(char *const *envp, struct library_image image)
{
	struct exec_environment env = { .envp = envp, .entry = library_entry(image) };

	while (envp && envp[env.count])
		env.count++;
	env.preload_at = env.count;
	for (size_t i = 0; i < env.count; i++) {
		const char *value = text_after(envp[i], "LD_PRELOAD=");

		if (value) {
			env.preload_at = i;
			env.has_library = exec_holds(value, env.entry, &env.has_ours);
		} else if (text_after(envp[i], "TIDEMARK_SESSION=")) {
			env.has_session = true;
		}
	}
	return env;
}

// Room for the new list and for the one string that is made anew.
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
		if (i != env->preload_at)
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

static void exec_tell(uint32_t reason, const char *path)
{
	uint64_t signals = kernel_block_signals();

	notes_exec(reason, path);
	kernel_restore_signals(signals);
}

static void exec_tell_failed(long error)
{
	uint64_t signals = kernel_block_signals();

	notes_exec_failed((uint32_t)-error);
	kernel_restore_signals(signals);
}

// In a vfork child, which has its parent's memory.
static bool exec_is_vfork_child(void)
{
	return recording_state && kernel_process_id() != recording_state->pid;
}

// A vfork child shall leave its parent's gate as it is.
static long exec_make(const char *path, long argv, const void *envp)
{
	if (exec_is_vfork_child())
		return kernel_call6_bare(__NR_execve, (long)path, argv, (long)envp, 0, 0, 0);
	return kernel(__NR_execve, path, argv, envp);
}

// With what the new image needs of us in the environment, or without what it cannot use. Returns
// if it fails.
static long exec_make_with(const char *path, long argv, char *const *envp,
			   const struct library_image *image, uint32_t reason)
{
	uint64_t on_stack[EXEC_ON_STACK_BYTES / 8];
	struct exec_environment env = exec_read(envp, *image);
	// A loader that cannot load the recorder would say so on the program's own stderr.
	bool with = reason != NOTE_EXEC_NO_LIBRARY && reason != NOTE_EXEC_32_BIT;
	void *room = on_stack;
	size_t bytes;
	long result;

	if (with ? env.has_library && env.has_session : !env.has_ours)
		return exec_make(path, argv, envp);
	bytes = exec_bytes(&env);
	if (bytes > sizeof(on_stack))
		room = kernel_pages(bytes);
	if (!room)
		return exec_make(path, argv, envp);
	result = exec_make(path, argv, exec_write(room, &env, with));
	if (room != on_stack)
		kernel(__NR_munmap, room, bytes);
	return result;
}

long exec_call(const char *path, long argv, char *const *envp)
{
	struct library_image image = { 0 };
	uint32_t reason;
	bool tells;
	long result;

	if (!library_entry(image)[0] || recording_phase() != RECORDING_ON ||
	    (recording_state->options & SEGMENT_NO_FOLLOW))
		return exec_make(path, argv, envp);
	reason = exec_look(path, &image);
	tells = reason != NOTE_EXEC_OK || exec_is_vfork_child();
	if (tells)
		exec_tell(reason, path);
	result = exec_make_with(path, argv, envp, &image, reason);
	if (tells)
		exec_tell_failed(result);
	return result;
}
