// The way into a program that is linked statically with glibc, and runs.
//
// What needs a place is the recorder's thread-local variables, at one distance from the thread
// pointer in all threads that are and will be. Below the program's own variables glibc keeps room
// for those of libraries that are opened later (1,664 bytes since 2.12), in every thread; static
// programs hardly ever open one. So the recorder's go there: in each thread that is, they are
// written; for those to come, what glibc knows of the program as an object (_dl_main_map) gets the
// longer image, as if the program had had these variables from the beginning.
//
//     Example: the program has 0x58 bytes of variables, from the thread pointer - 0x58 on. The
//     recorder has 0x60, which then begin at the thread pointer - 0xc0 (aligned to 16).
//
// Where these fields are in that map differs by version. They are found by what is in them: where
// the image is, how long it and its variables are, and so on, which no other words there are.
#include "launch/attacher_own_linux.h"

#include "base/mem.h"
#include "collect/peer.h"
#include "launch/loader_file_linux.h"
#include "launch/narrow_linux.h"
#include "launch/placer_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ATTACHER_MAP_WORDS = 256, // of that map, that are looked at
	ATTACHER_SURPLUS = 1024,  // of the room, that may be taken
	ATTACHER_VARIABLES_ALIGN = 16,
	ATTACHER_IMAGE_MAX = 1 << 20,
};

// What glibc knows of the program's variables: fields of its struct link_map, in this order. As
// glibc has them one after the other: where the first values are, how many bytes of them, how many
// in all, alignment, offset of the first byte, distance from the thread pointer, number of the
// module (1 is the program).
struct attacher_variables {
	uint64_t image, image_bytes, bytes, align, first, offset, module;
};

// What is found of it, and where that is.
struct attacher_room {
	struct attacher_variables own;
	uint64_t at;      // of these fields
	uint64_t used_at; // of how much room is used
};

static bool attacher_read_file(struct attacher *attacher)
{
	const struct objects_one *program = objects_program(&attacher->objects);
	char path[32];
	bool read;
	int fd;

	if (attacher->file || !program)
		return attacher->file != NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)attacher->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	attacher->file = mem_alloc(1, sizeof(*attacher->file));
	read = fd >= 0 && loader_file_read(fd, attacher->file);
	if (fd >= 0)
		close(fd);
	attacher->bias = objects_bias(&attacher->objects, program);
	if (!read) {
		mem_free(attacher->file);
		attacher->file = NULL;
	}
	return read;
}

bool attacher_may_place(struct attacher *attacher, const struct tracee *tracee)
{
	struct attach_range creates;

	if (attacher->entry || !attacher_read_file(attacher))
		return true;
	creates.start = attacher->bias + attacher->file->creates.start;
	creates.end = attacher->bias + attacher->file->creates.end;
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone &&
		    attacher_may_come(attacher, &tracee->threads[i], &creates))
			return false;
	return true;
}

static bool attacher_word(const struct attacher *attacher, uint64_t at, uint64_t *word)
{
	return at && tracee_read(attacher->pid, attacher->bias + at, word, sizeof(*word));
}

// Find what glibc knows of the program. False: it does not look as expected.
static bool attacher_find_variables(const struct attacher *attacher, struct attacher_room *room)
{
	const struct loader_file *file = attacher->file;
	const GElf_Phdr *tls = NULL;
	uint64_t words[ATTACHER_MAP_WORDS];
	size_t count;

	for (size_t i = 0; i < file->programs_count; i++)
		if (file->programs[i].p_type == PT_TLS)
			tls = &file->programs[i];
	if (!tls || tls->p_memsz > ATTACHER_IMAGE_MAX || tls->p_filesz > tls->p_memsz)
		return false;
	count = tracee_words(attacher->pid, attacher->bias + file->main_map, false, words,
			     ATTACHER_MAP_WORDS);
	// Eight bytes at a time through the map, until seven words in a row are what the program's
	// headers say.
	for (size_t i = 0; i + sizeof(room->own) / sizeof(*words) <= count; i++) {
		memcpy(&room->own, words + i, sizeof(room->own));
		room->at = attacher->bias + file->main_map + i * sizeof(*words);
		if (room->own.image == attacher->bias + tls->p_vaddr &&
		    room->own.image_bytes == tls->p_filesz && room->own.bytes == tls->p_memsz &&
		    room->own.align <= 4096 && room->own.module == 1 &&
		    room->own.offset >= room->own.bytes &&
		    room->own.offset - room->own.bytes < 4096)
			return true;
	}
	return false;
}

// Whether nothing is in the room that we would take, down to `offset`.
static bool attacher_is_free(const struct attacher *attacher, struct attacher_room *room,
			     uint64_t offset)
{
	uint64_t used, sequence;

	room->used_at = attacher->bias + attacher->file->tls_used;
	if (!attacher_word(attacher, attacher->file->tls_used, &used) || used > room->own.offset ||
	    offset - room->own.offset > ATTACHER_SURPLUS)
		return false;
	return !attacher_word(attacher, attacher->file->sequence, &sequence) ||
	       (int64_t)sequence >= 0 || 0 - sequence <= room->own.offset;
}

// Where the kernel has put the program's arguments: the 28th field of its state. (glibc's own
// variable for that is a few bytes off in a static program.) 0: that is not known.
static uint64_t attacher_arguments(pid_t pid)
{
	char text[1024];
	const char *at = peer_stat((uint32_t)pid, 28, text, sizeof(text));

	return at ? strtoull(at, NULL, 10) : 0;
}

// The variables in all threads: of those that are, and what those to come begin with.
static bool attacher_give_variables(const struct attacher *attacher, const struct tracee *tracee,
				    const struct attacher_room *room, const struct placer *placer,
				    const uint8_t *variables, uint64_t image_at)
{
	// The longer image: the recorder's variables, then the program's, `ahead` bytes further on.
	uint64_t ahead = placer->thread_offset - room->own.offset;
	size_t bytes = ahead + room->own.image_bytes;
	uint8_t *image = mem_alloc(1, bytes + 1);
	struct attacher_variables now = {
		.image = image_at,
		.image_bytes = bytes,
		.bytes = placer->thread_offset,
		.align = room->own.align > ATTACHER_VARIABLES_ALIGN ? room->own.align
								    : ATTACHER_VARIABLES_ALIGN,
		.first = room->own.first,
		.offset = placer->thread_offset,
		.module = room->own.module,
	};
	bool done;

	ASSERT(placer->thread_offset >= room->own.offset && placer->tls->p_filesz <= ahead);
	memcpy(image, variables, placer->tls->p_filesz);
	done = tracee_read(attacher->pid, room->own.image, image + ahead, room->own.image_bytes) &&
	       tracee_write(attacher->pid, image_at, image, bytes);
	for (size_t i = 0; i < tracee->count && done; i++)
		if (!tracee->threads[i].gone)
			done = tracee_write(attacher->pid,
					    narrow_thread_pointer(&tracee->threads[i].registers) -
						    placer->thread_offset,
					    image, placer->tls->p_memsz);
	done = done && tracee_write(attacher->pid, room->used_at, &now.offset, 8) &&
	       tracee_write(attacher->pid, room->at, &now, sizeof(now));
	mem_free(image);
	return done;
}

static bool attacher_place_with(struct attacher *attacher, const struct tracee *tracee,
				struct placer *placer, const struct attacher_room *room,
				struct err *err)
{
	size_t image_bytes = placer->thread_offset;
	uint8_t *variables = mem_alloc(1, placer->tls->p_memsz);
	bool placed, done;

	placer->block = placer_room(placer, sizeof(struct placer_block) + image_bytes, err);
	placed = placer->block && placer_map(placer, err) && placer_write(placer, variables, err);
	done = placed && attacher_give_variables(attacher, tracee, room, placer, variables,
						 placer->block + sizeof(struct placer_block));
	mem_free(variables);
	return done ||
	       (placed && placer_fail(attacher->pid, "its memory cannot be written", 0, err));
}

// The recorder's thread-local variables go into the room that the C library leaves in each thread
// for libraries that are opened later, next to the program's own. At most 1,024 bytes of it are
// taken, and only if nothing else is there (attacher_is_free).
bool attacher_place(struct attacher *attacher, const struct tracee *tracee,
		    struct tracee_loan *loan, const char *library, struct err *err)
{
	struct placer placer = { .pid = attacher->pid, .loan = loan, .path = library };
	struct attacher_room room;
	bool done;

	if (!attacher_read_file(attacher) || !attacher_find_variables(attacher, &room))
		return err_set(err, ERR_USAGE,
			       "process %d is statically linked, and its C library has its "
			       "variables in a way that is not known (try: tidemark record, which "
			       "starts the program)",
			       (int)attacher->pid);
	if (!placer_open(&placer, err))
		return false;
	placer.bias = attacher->bias;
	placer.thread_offset =
		placer_up(room.own.offset + placer.tls->p_memsz, ATTACHER_VARIABLES_ALIGN);
	if (attacher_is_free(attacher, &room, placer.thread_offset)) {
		placer.stack_end = attacher_arguments(attacher->pid);
		done = attacher_place_with(attacher, tracee, &placer, &room, err);
		attacher->entry = done ? placer.entry : 0;
	} else {
		done = err_set(err, ERR_USAGE,
			       "process %d is statically linked, and has no room for the "
			       "recorder's variables (try: tidemark record, which starts the "
			       "program)",
			       (int)attacher->pid);
	}
	placer_close(&placer);
	return done;
}
