// A recording of a program that runs already. It is not our child: its threads are stopped one by
// one (attacher), its end is seen at a pidfd, and the collector delivers nothing of it until it has
// what was allocated before.
//
//     look      process, library, pidfd             launch_look_at_running
//     await     every thread can be stopped, up to 30 s (a vfork, a device)
//     hold      the collector keeps what comes      launch_hold, while all threads stand
//     before    the walk's blocks go first          launch_send_before
//
// For example, a program with 40,000 blocks stands still for 12 ms while they are read. Its threads
// go on and free 3 of them at once: these frees reach the collector while it holds, and are
// delivered after the 40,000, so they are frees of blocks that the trace knows.
#include "launch/launch_own_linux.h"

#include "base/mem.h"
#include "launch/attachable_linux.h"
#include "os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/pidfd.h>

enum { LAUNCH_STOP_MS = 30000 }; // for threads of others to come where they can be stopped

bool launch_look_at_running(struct launch *launch, struct err *err)
{
	pid_t pid = (pid_t)launch->options->attach_pid;

	if (!preload_find_library(&launch->library, err))
		return false;
	preload_find_either(str_get(&launch->library), &launch->either);
	switch (attachable_look(pid, &launch->library, err)) {
	case ATTACHABLE_NOT_THERE:
		launch->result->end = LAUNCH_NOT_FOUND;
		return false;
	case ATTACHABLE_NOT:
		launch->result->end = LAUNCH_NOT_EXECUTABLE;
		return false;
	case ATTACHABLE:
		break;
	}
	launch->arguments = attachable_arguments(pid, &launch->program);
	launch->program_fd = pidfd_open(pid, 0);
	if (launch->program_fd < 0)
		return err_errno(err, errno, "cannot watch process %d", (int)pid);
	launch->starter.pid = pid;
	// A file without a name, which both ends have: the walk writes its blocks, the collector
	// reads them when COLLECT_BEFORE says that all are there.
	launch->before_fd = memfd_create("tidemark-before", MFD_CLOEXEC);
	return preload_session(launch->session, err);
}

// Until all threads of a program that is attached to can be stopped.
static bool launch_await(const struct launch *launch, struct err *err)
{
	return attachable_await((pid_t)launch->options->attach_pid, LAUNCH_STOP_MS,
				launch->signal_fd, launch->options->tell, err);
}

// "1.436 ms at most, one of them for 11.7 ms while it loaded the recorder, and for 38 ms while its
// 25,007 blocks were read".
static void launch_note_stood(const struct launch *launch, struct str *stood)
{
	const struct attacher_figures *figures = &launch->figures;
	bool many = figures->threads > 1;

	ASSERT(stood != NULL && launch->options->attach_pid != 0);
	str_clear(stood);
	str_format(stood, "%s at most", STR_DURATION(figures->stop_ns));
	if (figures->load_ns)
		str_format(stood, "%s for %s while it loaded the recorder",
			   many ? ", one of them" : ",", STR_DURATION(figures->load_ns));
	// None: it has not begun to allocate, or its allocator is one whose blocks are not known.
	if (figures->walk_ns && launch->before_count > 0)
		str_format(stood, ", and%s for %s while its %s blocks were read",
			   many ? " all" : "", STR_DURATION(figures->walk_ns),
			   STR_COUNT(launch->before_count));
	else if (figures->walk_ns)
		str_format(stood, ", and%s for %s while blocks were looked for, and none found",
			   many ? " all" : "", STR_DURATION(figures->walk_ns));
}

static void launch_tell_attached(const struct launch *launch)
{
	const struct attacher_figures *figures = &launch->figures;

	launch_tell(launch->options,
		    "attached to process %u, whose threads stood still for %s (Ctrl-C ends the "
		    "recording)",
		    launch->options->attach_pid, str_get(&launch->result->stood));
	if (figures->kept)
		launch_tell(launch->options,
			    "warning: %u of %u places of its code could not be changed",
			    figures->kept, figures->places + figures->kept);
}

// The collector shall deliver nothing of the program until it has what was there before.
static bool launch_hold(void *context, struct err *err)
{
	struct launch *launch = context;
	struct collect_message message = { .kind = 0 };

	// From here on until COLLECT_BEFORE the collector takes what comes, and delivers nothing.
	collector_process_send(&launch->collector_process, COLLECT_HOLD, 0, 0);
	while (launch_hear(launch, &message, LAUNCH_START_MS))
		if (message.kind == COLLECT_HELD)
			return true;
	return err_set(err, ERR_IO, "the collector does not answer");
}

static bool launch_samples(const struct launch *launch)
{
	return launch->options->sample_bytes > 0 || launch->options->overhead_max > 0;
}

// What the program had allocated before, or why that is not known.
static void launch_send_before(struct launch *launch, struct glibc_heap *before)
{
	size_t bytes = before->count * sizeof(*before->blocks);
	struct str text = { 0 };
	struct err err = { 0 };

	ASSERT(!launch->attached);
	if (launch_samples(launch))
		str_add(&before->why, "the recording is sampled");
	else if (before->why.length == 0 &&
		 !file_write_all(launch->before_fd, before->blocks, bytes, &err))
		str_add(&before->why, err.text);
	launch->before_count = before->count;
	glibc_heap_note(before, &text);
	if (before->why.length > 0)
		launch_tell(launch->options, "warning: what was allocated before is not %s",
			    str_get(&before->why));
	collector_process_say(&launch->collector_process, COLLECT_BEFORE,
			      (pid_t)launch->options->attach_pid, str_get(&text));
	str_fini(&text);
	glibc_heap_fini(before);
}

// launch_send_before also where nothing was read: launch_hold has made the collector keep back all
// events until COLLECT_BEFORE.
bool launch_attach(struct launch *launch, struct err *err)
{
	struct glibc_heap before = { 0 };
	bool wanted = !launch_samples(launch);

	if (!launch_await(launch, err) ||
	    !attacher_begin((pid_t)launch->options->attach_pid, str_get(&launch->library),
			    launch->session, wanted ? &before : NULL, launch_hold, launch,
			    &launch->figures, err)) {
		glibc_heap_fini(&before);
		return false;
	}
	launch_send_before(launch, &before);
	launch->attached = launch->started = true;
	launch_note_stood(launch, &launch->result->stood);
	launch_tell_attached(launch);
	return true;
}

// Said at the end and not when it was attached: taking the recorder out stops all threads once
// more, and the longest stop counts.
void launch_note_attached(const struct launch *launch)
{
	const struct attacher_figures *figures = &launch->figures;
	pid_t pid = (pid_t)launch->options->attach_pid;
	struct str line = { 0 };

	str_format(&line,
		   "attached while it ran: %u functions of its allocator entered, %u of %u places "
		   "of code changed; its threads, %u, stood still for %s",
		   figures->functions, figures->places, figures->places + figures->kept,
		   figures->threads, str_get(&launch->result->stood));
	collector_process_say(&launch->collector_process, COLLECT_NOTE, pid, str_get(&line));
	str_fini(&line);
}

// Where not all threads can be stopped the recorder stays, and the warning says what that means.
void launch_detach(struct launch *launch)
{
	pid_t pid = (pid_t)launch->options->attach_pid;
	struct err err = { 0 };

	ASSERT(pid != 0 || !launch->attached);
	if (!launch->attached)
		return;
	launch->attached = false;
	if (launch_await(launch, &err) ? !attacher_end(pid, launch->session, &launch->figures, &err)
				       : !attacher_stays(pid, &err))
		launch_tell(launch->options, "warning: %s", err.text);
	launch_note_stood(launch, &launch->result->stood);
	launch_note_attached(launch);
}
