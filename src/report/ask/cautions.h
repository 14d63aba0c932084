// cautions: what one must know of a trace before believing any figure of it.
#pragma once

#include "base/str.h"
#include "engine/space/space.h"
#include "trace/reader.h"

// That a trace is not whole, and why, into `text`; nothing of one that is.
void cautions_add_wholeness(const struct reader *reader, struct str *text);

// That what is mapped is not what calls say; nothing where it is.
void cautions_add_unlisted(const struct reader *reader, const struct space_totals *totals,
			   struct str *text);

// Tell each in a line: that the trace was cut, is sampled, lost events, was paused, was imported
// and what its source did not say. `scaled`: the answer estimates the whole of what was sampled;
// else it has the samples as they are. The text is valid during the call.
void cautions_tell(const struct reader *reader, bool scaled,
		   void (*tell)(void *context, const char *text), void *context);

// Of these, that it was paused or imported.
void cautions_tell_origin(const struct reader *reader,
			  void (*tell)(void *context, const char *text), void *context);

// Of these, what was there before in each process that was attached to, and is known or not.
void cautions_tell_attached(const struct reader *reader,
			    void (*tell)(void *context, const char *text), void *context);

// How much of so much time each call was recorded, and not samples.
uint64_t cautions_exact_ns(const struct reader *reader, uint64_t duration_ns);

// Whether the trace was imported; and lacks this, by a word of docs/format.md, 5.1 ("totals").
bool cautions_is_import(const struct trace_info *info);
bool cautions_lacks(const struct trace_info *info, const char *word);
