// mapped_files: a process's mapped files, as lines of /proc/PID/maps, and the modules that
// addresses are in.
#pragma once

#include "import/intake.h"

struct mapped_files {
	struct mapping_row *rows; // private
	size_t count, capacity;
};

void mapped_files_fini(struct mapped_files *mappings); // accepts { 0 }

// A line; one that is none, or maps no file as code, is nothing.
void mapped_files_add(struct mapped_files *mappings, const char *line);

// The module there, defined in the trace; 0: none. What the file says of itself is looked up where
// it is on this machine.
// A module is defined in the trace when the first address in it is asked for, so a trace has no
// modules that nothing refers to.
module_id mapped_files_find(struct mapped_files *mappings, struct intake *intake,
			    process_id process, uint64_t address);
