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
