// For example "C:\x\y.dll", "z:/y.dll", "\\host\share\y.dll" and "\Device\y.dll" are paths as
// Windows writes them, "/c/y.dll" and "y.dll" are not. The last part of "C:y.dll" is y.dll, because
// a colon ends a part where it is the second character.
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
