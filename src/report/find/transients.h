// transients: the spikes of a window and its series of equal buffers, in one of several forms.
#pragma once

#include "base/sink.h"
#include "report/find/spikes.h"
#include "report/table/sheet.h"

// What one answer is made of. `width` is in columns, of text alone.
struct transients {
	struct query_context *asked; // borrowed
	struct spikes *spikes;       // borrowed
	bool all_frames, colour;
	unsigned width;
};

// For people; as JSON (docs/schema/transients.json); its rows alone.
void transients_text(const struct transients *transients, struct sink *sink);
void transients_json(const struct transients *transients, struct sink *sink);
void transients_rows(const struct transients *transients, struct sheet *sheet);
