// cautions: what one must know of a trace before believing any figure of it.
#ifndef REPORT_CAUTIONS_H
#define REPORT_CAUTIONS_H

#include "trace/reader.h"

// Tell each in a line: that the trace was cut, is sampled, lost events, was paused. The text is
// valid during the call.
void cautions_tell(const struct reader *reader, void (*tell)(void *context, const char *text),
		   void *context);

// Of these, that it was paused.
void cautions_tell_pauses(const struct reader *reader,
			  void (*tell)(void *context, const char *text), void *context);

#endif
