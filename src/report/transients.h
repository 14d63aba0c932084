// transients: the spikes of a window and its series of equal buffers, in one of several forms.
#ifndef REPORT_TRANSIENTS_H
#define REPORT_TRANSIENTS_H

#include "base/sink.h"
#include "report/spikes.h"

struct transients {
	struct query_context *asked; // borrowed
	struct spikes *spikes;       // borrowed
	const char *bytes_min;       // as the user gave it, or NULL
	bool all_frames, colour;
	unsigned width;
};

typedef void transients_format(const struct transients *transients, struct sink *sink);

// For people; as JSON (docs/schema/transients.json); as one table.
transients_format transients_text, transients_json, transients_csv;

#endif
