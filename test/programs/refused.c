// refused: asks for memory under a limit, as another user than root.
//
//     refused map LIMIT | data LIMIT | lock LIMIT
//
// Under a limit of LIMIT KiB of addresses or data it maps 64 MiB; under one of what may be locked
// it locks all that it has. Prints "had" or "refused". What must be said: that it was refused for
// what the recorder maps, where it has what it asks for without it.
#include "guest.h"

#include <stdbool.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	int which;
	struct rlimit limit;
	bool had;

	guest_check(argc == 3, "refused map|data|lock LIMIT");
	which = argv[1][0] == 'm' ? RLIMIT_AS : argv[1][0] == 'd' ? RLIMIT_DATA : RLIMIT_MEMLOCK;
	limit.rlim_cur = limit.rlim_max = (rlim_t)atoi(argv[2]) * 1024;
	guest_check(setrlimit(which, &limit) == 0, "setrlimit");
	guest_check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0, "setresuid");
	had = which == RLIMIT_MEMLOCK ? mlockall(MCL_CURRENT) == 0
				      : mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
	guest_say("%s\n", had ? "had" : "refused");
	return 0;
}
