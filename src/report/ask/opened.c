// A trace is opened in two steps: its definitions are scanned here, which a damaged tail does not
// make fail, and its index is opened, or built, only when a question needs it. For example
// `tidemark report` of a trace without --from asks no window and builds no index; the first tab of
// the viewer that shows a window opens it for all others.
#include "report/ask/opened.h"

// A trace that is damaged opens, too: what is whole of it is shown, and what is wrong is said in
// front (cautions.h).
bool opened_open(struct opened *opened, const char *path, const struct symbols_options *symbols,
		 struct err *err)
{
	*opened = (struct opened){ .path = path, .reader = reader_open(path, err) };
	if (!opened->reader)
		return false;
	reader_scan(opened->reader);
	opened->symbols = symbols_new(opened->reader, symbols);
	opened->names = names_new(opened->reader, opened->symbols);
	return true;
}

bool opened_index(struct opened *opened, const struct window_options *options, struct err *err)
{
	if (!opened->window)
		opened->window = window_open(opened->path, opened->reader, options, err);
	return opened->window != NULL;
}

// An index that is old or damaged is none: the trace itself is asked then, and says what is wrong.
void opened_existing_index(struct opened *opened, const struct window_options *options)
{
	struct window_options existing = *options;
	struct err ignored = { 0 };

	existing.existing = true;
	if (!opened->window)
		opened->window = window_open(opened->path, opened->reader, &existing, &ignored);
}

// Definitions are scanned again: a reader has one position, and belongs to one thread.
bool opened_share(struct opened *opened, const struct opened *from,
		  const struct symbols_options *symbols, struct err *err)
{
	if (!opened_open(opened, from->path, symbols, err))
		return false;
	opened->window = window_share(from->window, opened->reader);
	return true;
}

void opened_stop(struct opened *opened, bool (*stop)(void *context), void *context)
{
	reader_stop(opened->reader, stop, context);
	if (opened->window)
		window_stop(opened->window, stop, context);
}

struct labels *opened_labels(struct opened *opened, enum labels_kind kind)
{
	struct labels *labels = opened->labels;

	if (!labels || labels_kind(labels) != kind)
		return labels_new(kind, opened->reader, opened->names);
	opened->labels = NULL;
	labels_again(labels);
	return labels;
}

void opened_labels_back(struct opened *opened, struct labels *labels)
{
	if (!labels)
		return;
	if (labels_bytes(labels) > opened->labels_most) {
		labels_free(labels);
		return;
	}
	labels_free(opened->labels);
	opened->labels = labels;
}

// In the reverse order: labels borrow the names, these the symbols, and all the reader.
void opened_close(struct opened *opened)
{
	window_close(opened->window);
	labels_free(opened->labels);
	names_free(opened->names);
	symbols_free(opened->symbols);
	reader_close(opened->reader);
	*opened = (struct opened){ 0 };
}
