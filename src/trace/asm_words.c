// Tables of words, in both directions. Flags are numbers of Linux, and on Windows numbers of its
// own, for which there are no words. A bit without a word is written as a number, so that nothing
// is lost: private|anonymous|0x8000000 reads back as it was.
#include "trace/asm_words.h"

#include "trace/asm_lex.h"

#include <inttypes.h>
#include <string.h>

static const char *const events[] = {
	[TRACE_MALLOC] = "malloc",
	[TRACE_CALLOC] = "calloc",
	[TRACE_ALIGNED] = "aligned",
	[TRACE_FREE] = "free",
	[TRACE_REALLOC] = "realloc",
	[TRACE_REALLOC_FREE] = "realloc-free",
	[TRACE_REALLOC_ALLOC] = "realloc-alloc",
	[TRACE_REALLOC_UNDO] = "realloc-undo",
	[TRACE_REALLOC_FAILED] = "realloc-failed",
	[TRACE_FAILED] = "failed",
	[TRACE_HEAP_ALLOC] = "heap-alloc",
	[TRACE_HEAP_FREE] = "heap-free",
	[TRACE_HEAP_RESET] = "heap-reset",
	[TRACE_HEAP_DESTROY] = "heap-destroy",
	[TRACE_BEFORE] = "before",
	[TRACE_MMAP] = "mmap",
	[TRACE_MUNMAP] = "munmap",
	[TRACE_MREMAP] = "mremap",
	[TRACE_BRK] = "brk",
	[TRACE_MPROTECT] = "mprotect",
	[TRACE_MADVISE] = "madvise",
	[TRACE_MLOCK] = "mlock",
	[TRACE_SHMAT] = "shmat",
	[TRACE_SHMDT] = "shmdt",
	[TRACE_REMAP] = "remap-file-pages",
	[TRACE_MAPPED] = "mapped",
	[TRACE_UNMAPPED] = "unmapped",
};

static const char *const notes[] = {
	[TRACE_NOTE_PROCESS_START] = "start",
	[TRACE_NOTE_PROCESS_END] = "end",
	[TRACE_NOTE_MARK] = "mark",
	[TRACE_NOTE_RSS] = "rss",
	[TRACE_NOTE_LOSS] = "loss",
	[TRACE_NOTE_MESSAGE] = "message",
	[TRACE_NOTE_EXEC_UNSEEN] = "exec-unseen",
	[TRACE_NOTE_MODULE_GONE] = "module-gone",
	[TRACE_NOTE_THREAD_NAME] = "thread-name",
	[TRACE_NOTE_PAUSE] = "pause",
	[TRACE_NOTE_RESUME] = "resume",
	[TRACE_NOTE_RSS_MAX] = "rss-max",
	[TRACE_NOTE_CALLS] = "calls",
	[TRACE_NOTE_PSS] = "pss",
	[TRACE_NOTE_SWAP] = "swap",
	[TRACE_NOTE_MINOR] = "minor-faults",
	[TRACE_NOTE_MAJOR] = "major-faults",
	[TRACE_NOTE_SNAPSHOTS_MISSED] = "snapshots-missed",
	[TRACE_NOTE_ADDRESS_LOW] = "address-low",
	[TRACE_NOTE_ADDRESS_END] = "address-end",
	[TRACE_NOTE_MAPPED_LIMIT] = "mapped-limit",
	[TRACE_NOTE_DATA_LIMIT] = "data-limit",
	[TRACE_NOTE_CALLS_ELSEWHERE] = "calls-elsewhere",
	[TRACE_NOTE_ALLOCATOR] = "allocator",
	[TRACE_NOTE_BEFORE] = "blocks-before",
	[TRACE_NOTE_INTERPRETER] = "interpreter",
	[TRACE_NOTE_GROUP_LIMIT] = "group-limit",
	[TRACE_NOTE_GROUP_KILLS] = "group-kills",
	[TRACE_NOTE_END_LATE] = "end-late",
	[TRACE_NOTE_TITLE] = "title",
	[TRACE_NOTE_SAMPLING] = "sampling",
};

enum {
	EVENTS_COUNT = sizeof events / sizeof *events,
	NOTES_COUNT = sizeof notes / sizeof *notes,
};
_Static_assert(EVENTS_COUNT == TRACE_UNMAPPED + 1, "the last kind has a word, too");

_Static_assert(NOTES_COUNT == (int)TRACE_NOTES_COUNT, "and so has the last note");

// NULL also between the kinds: 16 to 31 are no events yet.
static const char *word_of(const char *const *words, size_t count, uint8_t kind)
{
	return kind < count ? words[kind] : NULL;
}

// Kinds begin with 1: 0 is that no kind has the word.
static uint8_t find(const char *const *words, size_t count, const char *word)
{
	for (size_t kind = 1; kind < count; kind++)
		if (words[kind] && strcmp(words[kind], word) == 0)
			return (uint8_t)kind;
	return 0;
}

const char *asm_words_event(uint8_t kind)
{
	return word_of(events, EVENTS_COUNT, kind);
}

uint8_t asm_words_find_event(const char *word)
{
	return find(events, EVENTS_COUNT, word);
}

const char *asm_words_note(uint8_t kind)
{
	return word_of(notes, NOTES_COUNT, kind);
}

uint8_t asm_words_find_note(const char *word)
{
	return find(notes, NOTES_COUNT, word);
}

void asm_words_put_number(struct sink *sink, const char *key, uint64_t value, uint64_t usual)
{
	if (value != usual)
		sink_format(sink, " %s=%" PRIu64, key, value);
}

// Whatever a terminal or an editor does to text, ASCII comes back as it was. For example the two
// bytes of é are written \xc3\xa9.
void asm_words_quote(struct sink *sink, const char *text)
{
	sink_text(sink, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			sink_format(sink, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			sink_format(sink, "\\x%02x", c);
		else
			sink_write(sink, text, 1);
	}
	sink_text(sink, "\"");
}

// A word for a value, or for a bit of one.
struct value_word {
	const char *word;
	uint32_t value;
};

// As the kernel numbers them, whatever system this runs on. Longer words for several bits first.
static const struct value_word map_words[] = {
	{ "shared-validate", 0x3 }, { "shared", 0x1 },         { "private", 0x2 },
	{ "fixed", 0x10 },          { "anonymous", 0x20 },     { "32bit", 0x40 },
	{ "growsdown", 0x100 },     { "denywrite", 0x800 },    { "executable", 0x1000 },
	{ "locked", 0x2000 },       { "noreserve", 0x4000 },   { "populate", 0x8000 },
	{ "nonblock", 0x10000 },    { "stack", 0x20000 },      { "hugetlb", 0x40000 },
	{ "sync", 0x80000 },        { "noreplace", 0x100000 }, { NULL, 0 },
};

static const struct value_word remap_words[] = {
	{ "maymove", 1 },
	{ "fixed", 2 },
	{ "dontunmap", 4 },
	{ NULL, 0 },
};

static const struct value_word attach_words[] = {
	{ "rdonly", 0x1000 }, { "rnd", 0x2000 }, { "remap", 0x4000 },
	{ "exec", 0x8000 },   { NULL, 0 },
};

static const struct value_word advice_words[] = {
	{ "normal", 0 },          { "random", 1 },
	{ "sequential", 2 },      { "willneed", 3 },
	{ "dontneed", 4 },        { "free", 8 },
	{ "remove", 9 },          { "dontfork", 10 },
	{ "dofork", 11 },         { "mergeable", 12 },
	{ "unmergeable", 13 },    { "hugepage", 14 },
	{ "nohugepage", 15 },     { "dontdump", 16 },
	{ "dodump", 17 },         { "wipeonfork", 18 },
	{ "keeponfork", 19 },     { "cold", 20 },
	{ "pageout", 21 },        { "populate-read", 22 },
	{ "populate-write", 23 }, { "dontneed-locked", 24 },
	{ "collapse", 25 },       { "guard-install", 102 },
	{ "guard-remove", 103 },  { NULL, 0 },
};

static const struct value_word lock_words[] = {
	{ "unlock", 0 }, { "lock", 1 }, { "lock-all", 2 }, { "unlock-all", 3 }, { NULL, 0 },
};

static const struct value_word origin_words[] = {
	{ "program", TRACE_ORIGIN_PROGRAM },
	{ "allocator", TRACE_ORIGIN_ALLOCATOR },
	{ "libc", TRACE_ORIGIN_LIBC },
	{ "loader", TRACE_ORIGIN_LOADER },
	{ "recorder", TRACE_ORIGIN_RECORDER },
	{ "kernel", TRACE_ORIGIN_KERNEL },
	{ NULL, 0 },
};

static const struct value_word pages_words[] = {
	{ "present", TRACE_PAGES_PRESENT },
	{ "swapped", TRACE_PAGES_SWAPPED },
	{ NULL, 0 },
};

static const struct value_word reason_words[] = {
	{ "release", TRACE_SNAPSHOT_RELEASE }, { "exit", TRACE_SNAPSHOT_EXIT },
	{ "growth", TRACE_SNAPSHOT_GROWTH },   { "asked", TRACE_SNAPSHOT_ASKED },
	{ "mark", TRACE_SNAPSHOT_MARK },       { NULL, 0 },
};

static const struct value_word no_words[] = { { NULL, 0 } };

// The words of a kind's flags; *bits: they are ORed, not one of several values. Flags of a kind
// without words are bits all the same, which are then one hexadecimal number.
static const struct value_word *words_of_flags(uint8_t kind, bool *bits)
{
	*bits = true;
	switch (kind) {
	case TRACE_MMAP:
	case TRACE_MAPPED:
	case TRACE_REMAP:
		return map_words;
	case TRACE_MREMAP:
		return remap_words;
	case TRACE_SHMAT:
		return attach_words;
	case TRACE_MADVISE:
		*bits = false;
		return advice_words;
	case TRACE_MLOCK:
		*bits = false;
		return lock_words;
	default:
		return no_words;
	}
}

// A value that has no word is a number, in decimal.
static void put_value(struct sink *sink, const struct value_word *words, uint32_t value)
{
	while (words->word && words->value != value)
		words++;
	if (words->word)
		sink_text(sink, words->word);
	else
		sink_format(sink, "%u", value);
}

// A word's bits are taken away once it is written. So of a table that has words of several bits
// first, shared-validate (3) is not shared|private, and what is left at the end has no word.
static void put_bits(struct sink *sink, const struct value_word *words, uint32_t bits)
{
	const char *between = "";

	if (bits == 0)
		sink_text(sink, "0");
	for (; words->word; words++) {
		if ((bits & words->value) != words->value)
			continue;
		sink_format(sink, "%s%s", between, words->word);
		bits &= ~words->value;
		between = "|";
	}
	if (bits != 0)
		sink_format(sink, "%s0x%x", between, bits);
}

// One word, up to `end`, or a number.
static bool find_value(const char *text, const char *end, const struct value_word *words,
		       uint32_t *value)
{
	uint64_t number;

	for (; words->word; words++)
		if (strlen(words->word) == (size_t)(end - text) &&
		    strncmp(words->word, text, (size_t)(end - text)) == 0) {
			*value = words->value;
			return true;
		}
	if (!asm_lex_number(text, end, &number) || number > UINT32_MAX)
		return false;
	*value = (uint32_t)number;
	return true;
}

// Words and numbers may be mixed: "private|0x40".
static bool find_bits(const char *text, const struct value_word *words, uint32_t *bits)
{
	*bits = 0;
	for (;;) {
		const char *bar = strchr(text, '|');
		const char *end = bar ? bar : text + strlen(text);
		uint32_t value;

		if (!find_value(text, end, words, &value))
			return false;
		*bits |= value;
		if (!bar)
			return true;
		text = bar + 1;
	}
}

void asm_words_put_flags(struct sink *sink, uint8_t kind, uint32_t flags)
{
	bool bits;
	const struct value_word *words = words_of_flags(kind, &bits);

	if (bits)
		put_bits(sink, words, flags);
	else
		put_value(sink, words, flags);
}

bool asm_words_find_flags(const char *text, uint8_t kind, uint32_t *flags)
{
	bool bits;
	const struct value_word *words = words_of_flags(kind, &bits);

	return bits ? find_bits(text, words, flags)
		    : find_value(text, text + strlen(text), words, flags);
}

// r, w and x as /proc/PID/maps orders them; bits beyond these three make all of it a number.
void asm_words_put_protection(struct sink *sink, uint32_t protection)
{
	if (protection == 0)
		sink_text(sink, "none");
	else if (protection > 7)
		sink_format(sink, "0x%x", protection);
	else
		sink_format(sink, "%s%s%s", protection & 1 ? "r" : "", protection & 2 ? "w" : "",
			    protection & 4 ? "x" : "");
}

// Letters in any order: "xr" is 5. An empty word is a mistake, "none" is 0.
bool asm_words_find_protection(const char *text, uint32_t *protection)
{
	static const char letters[] = "rwx";
	uint64_t number;

	*protection = 0;
	if (strcmp(text, "none") == 0)
		return true;
	if (asm_lex_number(text, NULL, &number)) {
		*protection = (uint32_t)number;
		return number <= UINT32_MAX;
	}
	for (; *text; text++) {
		const char *letter = strchr(letters, *text);

		if (!letter)
			return false;
		*protection |= 1u << (letter - letters);
	}
	return *protection != 0;
}

// What a byte cannot hold is a mistake of the text: cut to a byte, 257 would be read as 1.
static bool find_byte(const char *text, const struct value_word *words, uint8_t *byte)
{
	uint32_t value;

	if (!find_value(text, text + strlen(text), words, &value) || value > UINT8_MAX)
		return false;
	*byte = (uint8_t)value;
	return true;
}

void asm_words_put_origin(struct sink *sink, uint8_t origin)
{
	put_value(sink, origin_words, origin);
}

bool asm_words_find_origin(const char *text, uint8_t *origin)
{
	return find_byte(text, origin_words, origin);
}

void asm_words_put_reason(struct sink *sink, uint8_t reason)
{
	put_value(sink, reason_words, reason);
}

bool asm_words_find_reason(const char *text, uint8_t *reason)
{
	return find_byte(text, reason_words, reason);
}

void asm_words_put_pages(struct sink *sink, uint8_t flags)
{
	put_bits(sink, pages_words, flags);
}

bool asm_words_find_pages(const char *text, uint8_t *flags)
{
	uint32_t bits;

	if (!find_bits(text, pages_words, &bits) || bits > UINT8_MAX)
		return false;
	*flags = (uint8_t)bits;
	return true;
}
