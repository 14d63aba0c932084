// replay: runs a fuzz target on inputs from files, without a fuzzer.
//
//     <name>_replay FILE-OR-FOLDER…
//
// Each input ends at an unmapped page, so that reading one byte too far is a crash. Says how many
// inputs there were.
#include "os/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static unsigned long inputs_count;

static void run_on_guarded(const struct file_view *view)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (view->size + page - 1) / page * page;
	uint8_t *start =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED || mprotect(start + room, page, PROT_NONE) != 0) {
		perror("replay: cannot map memory");
		exit(1);
	}
	memcpy(start + room - view->size, view->bytes, view->size);
	LLVMFuzzerTestOneInput(start + room - view->size, view->size);
	munmap(start, room + page);
}

static void replay_file(const char *path)
{
	struct file_view view = { 0 };
	struct err err = { 0 };

	if (!file_view_open(&view, path, &err)) {
		fprintf(stderr, "replay: %s\n", err.text);
		exit(1);
	}
	// A crash must not hide which input it was.
	printf("%s\n", path);
	fflush(stdout);
	run_on_guarded(&view);
	file_view_close(&view);
	inputs_count++;
}

static void replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct str path = { 0 };

	if (!dir) {
		perror(folder);
		exit(1);
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		str_clear(&path);
		str_format(&path, "%s/%s", folder, entry->d_name);
		replay_file(str_get(&path));
	}
	str_fini(&path);
	closedir(dir);
}

int main(int argc, char **argv)
{
	struct stat status;

	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode))
			replay_folder(argv[i]);
		else
			replay_file(argv[i]);
	}
	printf("%lu inputs\n", inputs_count);
	return 0;
}
