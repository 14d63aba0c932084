#include "symbols/drive.h"

bool drive_is(const char *path)
{
	char letter = (char)(path[0] | 32);

	return path[0] == '\\' || (letter >= 'a' && letter <= 'z' && path[1] == ':');
}

const char *drive_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '\\' || *path == '/' || (*path == ':' && path == name + 1))
			name = path + 1;
	return name;
}
