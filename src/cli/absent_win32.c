// absent: what Windows lacks. Options are in the list with their dashes, commands without, so that
// one list does for both. The text ends a sentence that begins with the name: it says what to do
// instead, not only why.
#include "cli/absent.h"

#include <string.h>

const char absent_system[] = "Windows";
const char absent_quote = '"';
const char absent_gnuplot[] = "from gnuplot.info; its folder belongs into PATH";
const char absent_first_examples[] =
	"  tidemark record server.exe --port 8080        output and exit code stay its own\n"
	"  tidemark report tidemark.server.exe.4242.tide peak, live at exit, hot sites\n"
	"  tidemark record -o all.tide -- build.bat      cmd.exe, and all that it starts\n";
const char absent_record_examples[] =
	"  tidemark record server.exe --port 8080\n"
	"  tidemark record -o all.tide -- build.bat       cmd.exe, and all that it starts\n"
	"  tidemark record -p 4242                        until Ctrl-C\n"
	"  tidemark record -o %e.%t.tide --free-stacks app.exe\n";
const char absent_record_notes[] =
	"Files\n"
	"  tidemark64.dll and tidemark32.dll are beside tidemark.exe.\n"
	"\nSee also\n"
	"  tidemark report, tidemark info, tidemark attach, tidemark watch\n";

const char *absent_why(const char *name)
{
	static const char *const known[][2] = {
		{ "top", "use tidemark view, or report, on the trace that is being written" },
		{ "bench", "use tidemark record several times, then check or diff on all traces" },
		{ "replay", "allocators are preloaded, which is Linux's; a trace of Windows is "
			    "replayed there" },
		{ "push", "send the trace from Linux, where databases and collectors are reached" },
		{ "fleet", "databases are asked from Linux" },
		{ "ctl", "a recording is not controlled from outside there; tidemark.h lets the "
			 "program set marks and pauses itself, and Ctrl-C ends a recording" },
		{ "--strict-vm", "all calls go through ntdll and are seen; leave the option out" },
		{ "--rss-exact", "snapshots of resident memory are Linux's; use map, and active "
				 "--layer vm, for what is committed" },
		{ "--reachability-at", "a process cannot be searched from outside here yet" },
		{ "--reachability", "a process cannot be searched from outside here yet" },
		{ "--duration", "press Ctrl-C when it is time; leave the option out" },
		{ "--jit", "no runtime writes names of generated code for perf there; leave the "
			   "option out" },
		{ "--native",
		  "frames of Python are not read there, so that the interpreter's are in "
		  "all stacks; leave the option out" },
		{ "--usdt", "such probes are Linux's; leave the option out" },
		{ "--max-overhead", "what recording costs is not measured there; use --sample" },
		{ "--keep", "a trace is not cut there while it is written; use tidemark trim" },
		{ "--max-size", "a trace is not cut there while it is written; use tidemark trim" },
		{ "--push", "send the trace from Linux when the recording has ended" },
		{ "--spool", "send the trace from Linux when the recording has ended" },
		{ "--credentials", "send the trace from Linux when the recording has ended" },
		{ "--cluster", "send the trace from Linux when the recording has ended" },
		{ "--every", "send the trace from Linux when the recording has ended" },
		{ "--ttl", "send the trace from Linux when the recording has ended" },
		{ "--rotate", "a trace is not cut there while it is written; use tidemark trim" },
		{ "--language-heaps", "heaps of Python are not read there; leave the option out" },
		{ "--index", "the first question builds the index; leave the option out" },
	};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i][0]) == 0)
			return known[i][1];
	return NULL;
}
