// markdown: an answer as tables of Markdown, for pull requests and wikis: a heading, what was
// asked, the warnings, the rows, and how many there are that it does not have.
//
// There is one writer for all commands: it takes the table of comma-separated values that each of
// them writes, and makes of each column what its name says: bytes, a count, a time, a stack. Rows
// of each `section` are a table of their own. Left out are columns that are for programs alone (the
// parts of a stack where the stack is there, numbers of rows) and those without any figure.
#ifndef REPORT_MARKDOWN_H
#define REPORT_MARKDOWN_H

#include "base/sink.h"
#include "report/query_context.h"

struct markdown_page {
	const char *command;                  // "window"
	const struct query_context *sides[2]; // the second: NULL, but for comparisons
	const char *names[2];                 // of their files
};

// `csv` is a heading and rows (RFC 4180).
void markdown_write(const struct markdown_page *page, const char *csv, struct sink *sink);

#endif
