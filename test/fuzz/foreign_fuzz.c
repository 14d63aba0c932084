// Broken heaps of other processes, as `record -p` reads them: glibc's, jemalloc's, mimalloc's and,
// where there is a program of musl's (MUSL_PROGRAM), musl's.
//
// A small program of each is started and stopped, and all its memory copied. Then it ends, and
// readers take what they read from the copy. Which words those are is noted once, with nothing
// broken. An input breaks a few of them: the first byte says whose heap, then each change is the
// number of a word (3 bytes), how it changes, and with what (8 bytes).
//
// Whatever they find, readers must come to an end; and what they believe must be possible: each
// block in memory that is there, none over another one.
#include "base/mem.h"
#include "launch/glibc_heap_linux.h"
#include "launch/jemalloc_heap_linux.h"
#include "launch/mimalloc_heap_linux.h"
#include "launch/musl_heap_linux.h"
#include "launch/narrow_linux.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	CHANGE_BYTES = 12,
	CHANGES_MAX = 16,
	WORDS_MAX = 1 << 18,
	SPANS_MAX = 1024,
	SPAN_BYTES_MAX = 64 << 20,
};

struct span {
	uint64_t start, end;
	uint8_t *bytes; // NULL: it cannot be read
};

static const char *const libraries[] = {
	NULL,
	"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
	"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
};

enum { MUSL = sizeof(libraries) / sizeof(*libraries), IMAGES };

// A process, as it was when it was stopped.
struct image {
	pid_t pid; // 0: there is none
	struct objects objects;
	struct tracee tracee;
	struct tracee_thread thread;
	struct span spans[SPANS_MAX];
	size_t spans_count;
	uint64_t *words; // where readers have read, in this order
	size_t words_count;
	size_t blocks_count; // that are in it
};

struct change {
	uint64_t at, word;
};

static struct image images[IMAGES];
static struct image *image; // that is read now
static bool noting;         // which words are read
static struct change changes[CHANGES_MAX];
static size_t changes_count;

// ---- What readers ask for, in the place of tracee_linux.c ---------------------------------------

static const struct span *find_span(uint64_t at)
{
	size_t low = 0, high = image->spans_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (image->spans[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < image->spans_count && at >= image->spans[low].start ? &image->spans[low]
									 : NULL;
}

// Of long stretches, those that are not 0.
static void note_words(uint64_t at, const uint8_t *bytes, size_t size)
{
	static const uint8_t zeros[8];

	for (size_t i = 0; i < size; i += 8) {
		size_t count = size - i < 8 ? size - i : 8;

		if (image->words_count < WORDS_MAX &&
		    (size <= 64 || memcmp(bytes + i, zeros, count) != 0))
			image->words[image->words_count++] = (at + i) & ~UINT64_C(7);
	}
}

static void apply_changes(uint64_t at, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < changes_count; i++)
		for (size_t n = 0; n < 8; n++) {
			uint64_t into = changes[i].at + n - at;

			if (into < size)
				bytes[into] = (uint8_t)(changes[i].word >> 8 * n);
		}
}

bool tracee_read(pid_t pid, uint64_t at, void *bytes, size_t size)
{
	uint8_t *out = bytes;

	(void)pid;
	for (size_t done = 0; done < size;) {
		const struct span *span = find_span(at + done);
		size_t count;

		if (!span || !span->bytes)
			return false;
		count = span->end - (at + done) < size - done ? span->end - (at + done)
							      : size - done;
		memcpy(out + done, span->bytes + (at + done - span->start), count);
		done += count;
	}
	if (noting)
		note_words(at, bytes, size);
	apply_changes(at, out, size);
	return true;
}

size_t tracee_words(pid_t pid, uint64_t at, bool narrow, uint64_t *words, size_t count)
{
	if (narrow)
		abort();
	while (count > 0 && !tracee_read(pid, at, words, count * sizeof(*words)))
		count /= 2;
	return count;
}

// ---- Processes ----------------------------------------------------------------------------------

// A program with some hundred blocks of many sizes, small and large, that waits.
static void be_program(int number)
{
#ifdef MUSL_PROGRAM
	if (number == MUSL)
		execl(MUSL_PROGRAM, MUSL_PROGRAM, (char *)NULL);
#endif
	if (number < MUSL && libraries[number])
		setenv("LD_PRELOAD", libraries[number], 1);
	if (number < MUSL)
		execl("/usr/bin/perl", "perl", "-e",
		      "$|=1; @a = map { 'x' x ($_ * $_) } 1 .. 400; $#a = 300;"
		      "push @a, 'y' x 300000, 'z' x 5000000; print 'r'; sysread STDIN, $b, 1",
		      (char *)NULL);
	_exit(127);
}

static pid_t start(int number, int *out)
{
	int in[2], said[2];
	pid_t pid;
	char byte;

	if (pipe(in) != 0 || pipe(said) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(said[1], 1);
		personality(ADDR_NO_RANDOMIZE); // so that an input says the same each time
		clearenv();
		setenv("PERL_HASH_SEED", "0", 1);
		be_program(number);
	}
	close(in[0]);
	close(said[1]);
	*out = in[1];
	if (read(said[0], &byte, 1) != 1) {
		close(in[1]);
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(said[0]);
	return pid;
}

static void copy_span(struct image *to, int memory, const struct maps_line *line)
{
	size_t bytes = line->end - line->start;
	struct span *span = &to->spans[to->spans_count];

	if (to->spans_count == SPANS_MAX)
		return;
	to->spans_count++;
	*span = (struct span){ line->start, line->end, NULL };
	if (bytes > SPAN_BYTES_MAX)
		return;
	span->bytes = malloc(bytes);
	if (span->bytes && pread(memory, span->bytes, bytes, (off_t)line->start) == (ssize_t)bytes)
		return;
	free(span->bytes);
	span->bytes = NULL;
}

static void copy(struct image *to)
{
	struct maps_line line;
	const char *at = to->objects.text, *end = at + to->objects.text_size;
	char path[32];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)to->pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	while (memory >= 0 && at < end)
		if (maps_text_next(&at, end, &line))
			copy_span(to, memory, &line);
	if (memory >= 0)
		close(memory);
}

static struct glibc_heap read_heap(void)
{
	struct glibc_heap heap = { 0 };

	if (objects_has_musl(&image->objects)
		    ? musl_heap_read(&heap, &image->objects, &image->tracee)
		    : glibc_heap_read(&heap, &image->objects, &image->tracee)) {
		jemalloc_heap_read(&heap, &image->objects, &image->tracee);
		mimalloc_heap_read(&heap, &image->objects, &image->tracee);
	}
	glibc_heap_check(&heap, &image->objects);
	return heap;
}

static void make_image(int number)
{
	struct glibc_heap heap;
	int out;

	image = &images[number];
	if (number < MUSL && libraries[number] && access(libraries[number], R_OK) != 0)
		return;
	image->pid = start(number, &out);
	if (!image->pid || ptrace(PTRACE_SEIZE, image->pid, NULL, NULL) != 0 ||
	    ptrace(PTRACE_INTERRUPT, image->pid, NULL, NULL) != 0 ||
	    waitpid(image->pid, NULL, __WALL) != image->pid ||
	    ptrace(PTRACE_GETREGS, image->pid, NULL, &image->thread.registers) != 0) {
		image->pid = 0;
		return;
	}
	image->thread.tid = image->pid;
	image->tracee = (struct tracee){ .pid = image->pid, .threads = &image->thread, .count = 1 };
	if (!objects_read(&image->objects, image->pid))
		abort();
	copy(image);
	kill(image->pid, SIGKILL);
	waitpid(image->pid, NULL, __WALL);
	close(out);
	image->words = malloc(WORDS_MAX * sizeof(*image->words));
	noting = true;
	heap = read_heap();
	noting = false;
	image->blocks_count = heap.count;
	if (heap.count < 100) // it is whole, and has to be read
		abort();
	glibc_heap_fini(&heap);
}

// ---- Inputs -------------------------------------------------------------------------------------

// How a word changes: as it is said, or by that; or it is what another word is, or where that is.
static uint64_t changed(uint64_t word, uint8_t how, uint64_t with)
{
	uint64_t other = image->words[with % image->words_count], read = 0;

	switch (how % 6) {
	case 0:
		return with;
	case 1:
		return word + (with & 0xff) - 128;
	case 2:
		return word ^ UINT64_C(1) << with % 64;
	case 3:
		return other + (with >> 56);
	case 4:
		tracee_read(image->pid, other, &read, sizeof(read));
		return read;
	default:
		return with % 4096;
	}
}

static void take_changes(const uint8_t *data, size_t size)
{
	while (size >= CHANGE_BYTES && changes_count < CHANGES_MAX) {
		uint64_t number = data[0] | data[1] << 8 | data[2] << 16, with, word = 0;
		struct change change = { image->words[number % image->words_count], 0 };

		memcpy(&with, data + 4, sizeof(with));
		tracee_read(image->pid, change.at, &word, sizeof(word));
		change.word = changed(word, data[3], with);
		changes[changes_count++] = change;
		data += CHANGE_BYTES;
		size -= CHANGE_BYTES;
	}
}

static int by_address(const void *left, const void *right)
{
	const struct collect_block *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

static void refuse(const char *why, const struct collect_block *block)
{
	fprintf(stderr, "block at %#llx, %llu bytes: %s\n", (unsigned long long)block->address,
		(unsigned long long)block->size, why);
	abort();
}

// What is believed must be possible.
static void check_blocks(struct glibc_heap *heap)
{
	if (heap->count)
		qsort(heap->blocks, heap->count, sizeof(*heap->blocks), by_address);
	for (size_t i = 0; i < heap->count; i++) {
		const struct collect_block *block = &heap->blocks[i];
		uint64_t end = block->address + block->size;

		if (end < block->address)
			refuse("has no end", block);
		if (i + 1 < heap->count && end > block[1].address)
			refuse("is over the next one", block);
		for (uint64_t at = block->address; at < end;) {
			const struct span *span = find_span(at);

			if (!span)
				refuse("is where nothing can be", block);
			at = span->end;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	struct glibc_heap heap;

	for (int i = 0; i < IMAGES && !made; i++)
		make_image(i);
	made = true;
	if (size < 1)
		return 0;
	image = &images[data[0] % IMAGES];
	if (!image->pid)
		return 0;
	changes_count = 0;
	take_changes(data + 1, size - 1);
	heap = read_heap();
	check_blocks(&heap);
	glibc_heap_fini(&heap);
	return 0;
}
