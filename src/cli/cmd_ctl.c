// tidemark ctl: tells the recording of a running program to leave something out, or to remember a
// moment.
//
// Words after the PID are made one request of the protocol (collect/control.h), and the collector's
// answer is printed. For example `ctl 4242 sample 64K` sends the verb CONTROL_SAMPLE with the value
// 16. `save` is done here: the collector writes what it has and says where the trace is, and the
// copy is made from that file.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "collect/control.h"
#include "collect/overhead.h"
#include "trace/fresh.h"
#include "trace/repair.h"
#include "wire/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row options[] = { { 0 } };

static int run(int argc, char **argv);

const struct command cmd_ctl = {
	.name = "ctl",
	.writes_operand = true,
	.brief = "stop, start or end the recording of a running program, mark, save or search it",
	.usage = "PID start|stop|detach|reachability|save FILE|mark NAME|sample SIZE",
	.text = "PID is a process that is being recorded.\n\n"
		"  stop       allocations of the process are not recorded from now on; frees are\n"
		"  start      they are again, also if it was recorded --paused\n"
		"  mark NAME  a moment for --from and --to: what the process did before is before\n"
		"             it\n"
		"  detach     the recording ends, the program runs on\n"
		"  reachability\n"
		"             which of its blocks nothing points to is found out now\n"
		"  save FILE  a copy of the trace as it is now; the recording goes on\n"
		"  sample SIZE|all|auto\n"
		"             of a recording with --max-overhead: one allocation in SIZE bytes\n"
		"             of them is recorded from now on, or all are, or it is decided by\n"
		"             the budget again\n",
	.examples = "  tidemark record --paused ./server &\n"
		    "  tidemark ctl 4242 start\n"
		    "  tidemark ctl 4242 mark load\n"
		    "  tidemark window tidemark.server.4242.tide --from mark:load\n"
		    "  tidemark ctl 4242 save now.tide\n",
	.options = options,
	.run = run,
};

// In the order of the protocol's numbers, from CONTROL_MARK on; "sample", which came later, has its
// own.
static const char *const verb_words[] = { "mark",         "stop", "start",  "detach",
					  "reachability", "save", "sample", NULL };

#define VERBS "start, stop, detach, reachability, save, sample or mark"

static bool take_pid(struct args *args, const char *word, uint32_t *pid)
{
	char *end;
	unsigned long value = strtoul(word, &end, 10);

	if (word[0] < '0' || word[0] > '9' || *end || value == 0 || value > INT32_MAX)
		return args_mistake(args, "'%s' is not a process id", word);
	*pid = (uint32_t)value;
	return true;
}

static bool take_verb(struct args *args, const char *word, uint32_t *verb)
{
	const char *nearest = str_nearest(word, verb_words);

	for (uint32_t i = 0; verb_words[i]; i++) {
		if (strcmp(word, verb_words[i]) == 0) {
			// Numbers of the protocol never change, so a verb that came later is not in
			// the row of the others.
			*verb = strcmp(word, "sample") == 0 ? CONTROL_SAMPLE : CONTROL_MARK + i;
			return true;
		}
	}
	if (nearest)
		return args_mistake(args, "'%s' is not " VERBS "; did you mean '%s'?", word,
				    nearest);
	return args_mistake(args, "'%s' is not " VERBS, word);
}

static bool take_name(struct args *args, const char *name, struct control_request *request)
{
	if (!name)
		return args_mistake(args, "mark needs a NAME");
	if (*name == 0 || strlen(name) >= CONTROL_TEXT_MAX)
		return args_mistake(args, "a mark's name has 1 to %d bytes", CONTROL_TEXT_MAX - 1);
	strcpy(request->text, name);
	return true;
}

// A distance is sent as the exponent of two: 64K is 16.
static bool take_distance(struct args *args, const char *word, struct control_request *request)
{
	uint64_t bytes;

	// `auto` is what holds where nothing else is recognised below.
	request->value = word && strcmp(word, "all") == 0 ? OVERHEAD_ALL : OVERHEAD_AUTO;
	if (!word)
		return args_mistake(args, "sample needs a SIZE, all or auto");
	if (strcmp(word, "all") == 0 || strcmp(word, "auto") == 0)
		return true;
	// A power of two, since only its exponent is sent; 1 byte would be every allocation, which
	// is "all".
	if (!str_parse_bytes(word, &bytes) || bytes < 2 || bytes > SEGMENT_SAMPLE_BYTES_MAX ||
	    (bytes & (bytes - 1)) != 0)
		return args_mistake(args, "sample %s: a power of two (64K), all or auto expected",
				    word);
	request->value = (uint32_t)__builtin_ctzll(bytes);
	return true;
}

// A whole trace of what the recording has so far.
// The file that is being written is read as one that was cut just now, which repair makes whole;
// the recorder does not notice.
static bool save(const char *path, const char *output, struct err *err)
{
	struct repair_result result;
	struct fresh fresh = { .fd = -1 };
	bool ok = fresh_open_of(&fresh, output, false, path, err) &&
		  (repair_copy(path, fresh.fd, &result, err) || fresh_name_failure(&fresh, err)) &&
		  fresh_keep(&fresh, err);

	ASSERT(path && output);
	fresh_close(&fresh);
	if (ok)
		printf("%s: %s events so far\n", output, STR_COUNT(result.events));
	return ok;
}

// By place: PID, VERB, and a third word that only mark, sample and save have. To save is done here
// and not by the recording, which only says what its trace is.
static int run(int argc, char **argv)
{
	struct control_request request = { .magic = CONTROL_MAGIC };
	char said[CONTROL_TEXT_MAX] = "";
	const char *words[3] = { NULL };
	struct err err = { 0 };
	size_t count = 0;
	struct args args;
	int id;

	args_init(&args, &cmd_ctl, argc, argv);
	while ((id = args_next(&args)) != ARGS_END) {
		if (id == ARGS_EXIT)
			return args.exit_code;
		if (count == 3) {
			args_mistake(&args, "too many words: '%s'", args.value);
			return args.exit_code;
		}
		words[count++] = args.value;
	}
	if (!args_need(&args, words[0], "a PID") || !take_pid(&args, words[0], &request.pid) ||
	    !args_need(&args, words[1], VERBS) || !take_verb(&args, words[1], &request.verb))
		return args.exit_code;
	if (request.verb == CONTROL_MARK && !take_name(&args, words[2], &request))
		return args.exit_code;
	if (request.verb == CONTROL_SAMPLE && !take_distance(&args, words[2], &request))
		return args.exit_code;
	// A name that is taken is refused before the collector is asked.
	if (request.verb == CONTROL_SAVE &&
	    (!args_need(&args, words[2], "the FILE to save it to") ||
	     !fresh_check(words[2], false, &err)))
		return err.kind ? args_fail(&cmd_ctl, &err) : args.exit_code;
	if (request.verb != CONTROL_MARK && request.verb != CONTROL_SAVE &&
	    request.verb != CONTROL_SAMPLE && words[2]) {
		args_mistake(&args, "too many words: '%s'", words[2]);
		return args.exit_code;
	}
	if (!control_ask(&request, said, &err))
		return args_fail(&cmd_ctl, &err);
	if (request.verb == CONTROL_SAVE)
		// `said` is the path of the trace that is being written.
		return save(said, words[2], &err) ? EXIT_ANSWERED : args_fail(&cmd_ctl, &err);
	if (*said)
		puts(said);
	return EXIT_ANSWERED;
}
