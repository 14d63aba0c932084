// descriptors: does to its file descriptors whatever a program may do.
//
//     descriptors HOW FOLDER     close_range | loop | dup2
//
// Closes every descriptor from 3 up (by close_range or one by one), or dup2s a file of its own
// over each of 3 to 255; then opens files in FOLDER, which take the numbers that became free, and
// writes known text to each, allocating 7010 bytes between the writes: 1,000 pairs. The files are
// the same as without a recorder, and the recording goes on.
#include "guest.h"

#include <errno.h>
#include <sys/syscall.h>

enum { FILES = 40, PAIRS = 1000 };

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "close_range";
	const char *folder = argc > 2 ? argv[2] : ".";
	int files[FILES];
	char path[4096];

	guest_pair(7010);
	if (strcmp(how, "close_range") == 0) {
		guest_check(syscall(SYS_close_range, 3, ~0u, 0) == 0, "close_range");
	} else if (strcmp(how, "loop") == 0) {
		for (int fd = 3; fd < 4096; fd++)
			close(fd);
	} else {
		int fd;

		snprintf(path, sizeof(path), "%s/over", folder);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
		guest_check(fd >= 0, "open");
		for (int over = 3; over < 256; over++)
			guest_check(dup2(fd, over) == over, "dup2");
		for (int i = 0; i < PAIRS; i++) {
			guest_pair(7010);
			guest_check(write(3 + i % 253, "over\n", 5) == 5, "write");
		}
		syscall(SYS_close_range, 3, ~0u, 0);
	}
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/file%d", folder, i);
		files[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
		guest_check(files[i] == 3 + i, "descriptors are given out as without a recorder");
	}
	for (int i = 0; i < PAIRS; i++) {
		guest_pair(7010);
		guest_check(write(files[i % FILES], path, 16) == 16, "write");
	}
	return 0;
}
