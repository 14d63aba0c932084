#include "report/ask/opened.h"

bool opened_open(struct opened *opened, const char *path, const struct symbols_options *symbols,
		 struct err *err)
{
	struct err damage = { 0 };

	*opened = (struct opened){ .path = path, .reader = reader_open(path, err) };
	if (!opened->reader)
		return false;
	reader_scan(opened->reader, &damage);
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

void opened_existing_index(struct opened *opened, const struct window_options *options)
{
	struct window_options existing = *options;
	struct err ignored = { 0 };

	existing.existing = true;
	if (!opened->window)
		opened->window = window_open(opened->path, opened->reader, &existing, &ignored);
}

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

void opened_close(struct opened *opened)
{
	window_close(opened->window);
	names_free(opened->names);
	symbols_free(opened->symbols);
	reader_close(opened->reader);
	*opened = (struct opened){ 0 };
}
