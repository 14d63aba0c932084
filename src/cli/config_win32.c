// No file on Windows yet: there is no libinih to link. One that lies in the working directory is
// not passed over in silence.
#include "cli/config.h"

#include "base/mem.h"
#include "cli/args.h"
#include "os/file.h"

#include <string.h>

bool config_read(struct config *config, const struct command *const *,
		 const struct command *command, int argc, char **argv, struct err *)
{
	if (file_look("tidemark.conf") != FILE_IS_MISSING)
		args_warn(command, "tidemark.conf is not read on Windows: give its options on the "
				   "command line");
	*config = (struct config){ .argc = argc };
	config->argv = mem_alloc((size_t)argc + 1, sizeof *config->argv);
	memcpy(config->argv, argv, (size_t)argc * sizeof *argv);
	return true;
}

void config_fini(struct config *config)
{
	mem_free(config->argv);
	*config = (struct config){ 0 };
}
