// The file is read and not the process: a symbol table is not mapped. It is opened by
// /proc/PID/root, as the process sees it, and used only if it has the inode of the mapping: a file
// that was replaced on the disk since has other addresses. For example a program of Rust's, with
// jemalloc's _rjem_mallocx at 0x4a1b30 of its file and loaded at 0x555555554000: mallocx is
// 0x5555559f5b30.
//
// To read a large table takes longer than threads may stand. So it is done before the threads are
// stopped, and what was found is carried over to the list that is read while they stand.
#include "launch/objects_inside_linux.h"

#include "base/mem.h"
#include "base/str.h"
#include "launch/loader_file_linux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void objects_inside_look(const struct objects *objects, struct objects_one *object)
{
	uint64_t bias = objects_bias(objects, object);
	struct loader_file file;
	struct str path = { 0 };
	struct stat status;
	int fd;

	str_format(&path, "/proc/%d/root%s", (int)objects->pid, object->path);
	fd = open(str_get(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	str_fini(&path);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == object->inode &&
	    loader_file_read(fd, &file) &&
	    (file.mallocx || file.mi_version || (objects->alone && file.arena))) {
		object->mallocx = file.mallocx ? bias + file.mallocx : 0;
		object->mi_version = file.mi_version ? bias + file.mi_version : 0;
		object->arena = objects->alone && file.arena ? bias + file.arena : 0;
		object->parameters = object->arena && file.parameters ? bias + file.parameters : 0;
		// By the process's addresses from here on.
		object->inside = mem_alloc(file.inside_count, sizeof(*object->inside));
		for (size_t i = 0; i < file.inside_count; i++)
			object->inside[object->inside_count++] = (struct loader_file_span){
				bias + file.inside[i].start,
				bias + file.inside[i].end,
			};
	}
	close(fd);
}

void objects_inside_know(struct objects *objects, const struct objects *earlier)
{
	for (size_t i = 0; i < objects->count; i++) {
		struct objects_one *object = &objects->list[i];
		const struct objects_one *known = objects_at(earlier, object->start);

		if (!known || known->start != object->start || known->inode != object->inode)
			continue;
		object->mallocx = known->mallocx;
		object->mi_version = known->mi_version;
		object->arena = known->arena;
		object->parameters = known->parameters;
	}
}
