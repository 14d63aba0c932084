// etl_system: the processes and images of a Windows event log, each with the time when it was
// there. A pid and an address are used again, so both are asked for with a time.
//
//     etl_system_new
//       etl_system_add       every event, in the order of time
//       etl_system_settle
//       etl_system_find …    questions
//     etl_system_free
#pragma once

#include "import/etl_file.h"

#include <stdbool.h>

enum { ETL_BUILD_ID_MAX = 32 };

// One use of a pid, from `began` to `ended`, in the log's clock.
struct etl_process {
	uint32_t pid, parent;
	uint64_t began, ended; // 0: before the log; UINT64_MAX: after it
	int32_t exit;
	char *name, *command; // never NULL
};

// One file that was mapped as code into one process, from `loaded` to `unloaded`, in the log's
// clock. What it was linked as leads to its symbols.
struct etl_image {
	uint32_t pid;
	uint64_t start, end;
	uint64_t loaded, unloaded; // 0: before the log; UINT64_MAX: after it
	uint32_t linked;           // its TimeDateStamp
	bool recycled;             // another image was there before
	uint8_t build_id_length;   // 0: not known
	uint8_t build_id[ETL_BUILD_ID_MAX];
	char *path; // never NULL
};

struct etl_system;

struct etl_system *etl_system_new(void);
void etl_system_free(struct etl_system *system); // NULL is allowed

// Give all events: those that speak of processes and images are taken. Then what belongs together
// is brought together: an image and the event that has its build-id, which may come before or after
// it.
void etl_system_add(struct etl_system *system, const struct etl_event *event);
void etl_system_settle(struct etl_system *system);

// The process that has the pid at that time, or else the one nearest to it: its parent may act in
// it before it has begun. A pid that no event speaks of is a process without a name.
uint32_t etl_system_find(struct etl_system *system, uint32_t pid, uint64_t time);
// Numbers count from 0. Borrowed until etl_system_free.
const struct etl_process *etl_system_process(const struct etl_system *system, uint32_t number);
uint32_t etl_system_processes(const struct etl_system *system);

// The number of the image that the process had there at that time, or else of one that it had there
// at another time; UINT32_MAX: none.
uint32_t etl_system_find_image(const struct etl_system *system, uint32_t pid, uint64_t address,
			       uint64_t time);
const struct etl_image *etl_system_image(const struct etl_system *system, uint32_t number);
uint32_t etl_system_images(const struct etl_system *system);
uint32_t etl_system_named(const struct etl_system *system); // images whose symbols can be found

// Whether the event loads an image where another has been.
bool etl_system_reloads(const struct etl_system *system, const struct etl_event *event,
			uint32_t *pid);
