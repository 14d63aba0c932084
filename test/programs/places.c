// places: goes where a recorder might lose it, and allocates before and after.
//
//     places HOW [FOLDER]   chdir | chroot | setuid | clearenv | dumpable | nothing
//
// Keeps 100 blocks of 7701 bytes, does it, keeps 100 blocks of 7702. Then starts itself again
// where it can (clearenv, chdir, dumpable, setuid; after chroot /places, if there is such a
// program): that image keeps 50 blocks of 7703.
#include "guest.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

static void keep(size_t size, int count)
{
	while (count-- > 0)
		guest_keep(size);
}

static void again(const char *self)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, "places", "again", NULL);
		_exit(127);
	}
	guest_check(waitpid(pid, &status, 0) == pid && status == 0, "the child failed");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "nothing";
	const char *folder = argc > 2 ? argv[2] : "/";
	char self[4096] = "";

	if (strcmp(how, "again") == 0) {
		keep(7703, 50);
		return 0;
	}
	guest_check(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0, "readlink");
	keep(7701, 100);
	if (strcmp(how, "chdir") == 0)
		guest_check(chdir("/") == 0, "chdir");
	else if (strcmp(how, "chroot") == 0)
		guest_check(chroot(folder) == 0 && chdir("/") == 0, "chroot");
	else if (strcmp(how, "setuid") == 0)
		guest_check(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0,
			    "setuid");
	else if (strcmp(how, "clearenv") == 0)
		clearenv();
	else if (strcmp(how, "dumpable") == 0)
		guest_check(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
	keep(7702, 100);
	if (strcmp(how, "chroot") == 0 && access("/places", X_OK) == 0)
		again("/places");
	else if (strcmp(how, "chroot") != 0 && strcmp(how, "nothing") != 0)
		again(self);
	return 0;
}
