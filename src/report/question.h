// question: a trace that is open, with its names, its filters and its window: what every command
// begins with that asks the engine.
//
//     question_open      opens the trace, finds what the words mean, builds the index if need be
//       question_query   what the engine is to be asked; the caller adds a grouping
//       question_selects whether a cell passes the filters: call it in the grouping
//     question_close
//
// A window that is named by marks has exact edges; one by times falls behind the last step that is
// not later (engine/window.h).
#ifndef REPORT_QUESTION_H
#define REPORT_QUESTION_H

#include "report/opened.h"
#include "report/selection.h"

struct question_options {
	const struct selection_words *words; // borrowed until question_close
	struct opened *opened;               // borrowed; NULL: `path` is opened
	struct symbols_options symbols;      // these four unless `opened`
	uint64_t memory_bytes;               // for the engine; 0: its default
	unsigned layers_all;                 // what no --layer means; 0: the heap
	bool exit_frees;                     // the end of a process ends its blocks
	bool plain;                          // no index (engine/window.h)
	enum progress_mode progress;
	bool (*stop)(void *context); // the engine's, and its context
	void (*say)(void *context, const char *text);
	void *context;
};

struct question {
	const struct question_options *options; // borrowed
	struct opened own;                      // private: unless it was opened already
	struct reader *reader;
	struct symbols *symbols;
	struct names *names;
	struct selection selection;
	struct window *window;
	unsigned layers;   // that are asked about
	uint64_t from, to; // edges
	uint64_t from_ns, to_ns;
	char **warnings; // what one must know before believing the figures, a line each
	size_t warnings_count, warnings_capacity;
};

// ERR_USAGE where a word names nothing in the trace or the window is none.
bool question_open(struct question *question, const char *path,
		   const struct question_options *options, struct err *err);
void question_close(struct question *question); // accepts { 0 }

// All but group and context. A window of the caller's may replace from and to.
struct window_query question_query(const struct question *question);

// By the filters that are functions of a cell; not by lifetime (which is in the query) and impact.
// Frees of nothing known pass only where no filter asks for what they do not have.
bool question_selects(const struct question *question, const struct window_cell *cell);

// Another line of warning, as printf would write it. What is said already is not said again.
void question_warn(struct question *question, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// ERR_USAGE: both layers are asked about, and nothing tells them apart (`by_layer`: a key does).
bool question_check_layers(const struct question *question, bool by_layer, struct err *err);

// "14.2 s to mark:load#2 (21.1 s)": the window as it was asked for. Owned by the caller.
char *question_describe(const struct question *question);

#endif
