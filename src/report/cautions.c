#include "report/cautions.h"

#include "base/str.h"

#include <inttypes.h>

void cautions_tell(const struct reader *reader, void (*tell)(void *context, const char *text),
		   void *context)
{
	const struct trace_end *end = reader_end(reader);
	const struct trace_info *info = reader_info(reader);
	struct str text = { 0 };
	struct err err = { 0 };

	if (!reader_complete(reader)) {
		reader_ok(reader, &err);
		str_format(&text, "the trace is not whole: %s; what is counted is what is there",
			   *err.text ? err.text : "it was cut");
		tell(context, str_get(&text));
		str_clear(&text);
	}
	if (info->sample_bytes) {
		str_format(&text,
			   "the recording is sampled: the figures are those of the blocks that "
			   "are in it, a block of s bytes with probability 1 - exp(-s / %" PRIu64
			   "); tidemark report estimates the whole",
			   info->sample_bytes);
		tell(context, str_get(&text));
		str_clear(&text);
	}
	if (end && end->events_lost) {
		str_format(&text, "%" PRIu64 " events were lost; the figures are too small",
			   end->events_lost);
		tell(context, str_get(&text));
	}
	str_fini(&text);
}
