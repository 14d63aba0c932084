// For example "process,stack" is two keys, in this order: rows of processes, and in each of them
// rows of stacks. The table of words is the list that a mistake is answered with.
#include "report/ask/keys.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static const char *const words[KEYS_COUNT + 1] = {
	[KEYS_PROCESS] = "process",   [KEYS_LAYER] = "layer",   [KEYS_HEAP] = "heap",
	[KEYS_THREAD] = "thread",     [KEYS_OWNER] = "owner",   [KEYS_MODULE] = "module",
	[KEYS_FUNCTION] = "function", [KEYS_LINE] = "line",     [KEYS_STACK] = "stack",
	[KEYS_TAG] = "tag",           [KEYS_IMPACT] = "impact", [KEYS_TYPE] = "type",
	[KEYS_SIZE] = "size",         [KEYS_MARK] = "mark",     [KEYS_LIFETIME] = "lifetime",
};

const char *keys_word(enum keys_key key)
{
	ASSERT(key < KEYS_COUNT);
	return words[key];
}

bool keys_has(const struct keys *keys, enum keys_key key)
{
	ASSERT(key < KEYS_COUNT);
	for (size_t i = 0; i < keys->count; i++)
		if (keys->list[i] == key)
			return true;
	return false;
}

// A word that is near to a key is corrected; else all keys are listed.
static bool unknown(const char *word, struct err *err)
{
	const char *nearest = str_nearest(word, words);
	struct str list = { 0 };

	for (int i = 0; i < KEYS_COUNT; i++)
		str_format(&list, "%s%s", i ? ", " : "", words[i]);
	if (nearest)
		err_set(err, ERR_USAGE, "no key '%s'; did you mean '%s'?", word, nearest);
	else
		err_set(err, ERR_USAGE, "no key '%s' (%s)", word, str_get(&list));
	str_fini(&list);
	return false;
}

// The order of words is the order of nesting. `lifetime` has a row for each allocation, which
// nothing can divide further.
static bool add(struct keys *keys, const char *word, struct err *err)
{
	enum keys_key key = 0;

	while (key < KEYS_COUNT && strcmp(words[key], word) != 0)
		key++;
	if (key == KEYS_COUNT)
		return unknown(word, err);
	if (keys_has(keys, key))
		return err_set(err, ERR_USAGE, "key '%s' is given twice", word);
	if (keys_has(keys, KEYS_LIFETIME))
		return err_set(err, ERR_USAGE,
			       "key 'lifetime' is single allocations: it can only be the last");
	ASSERT(keys->count < KEYS_COUNT);
	keys->list[keys->count++] = key;
	return true;
}

// Each word is copied, as it does not end with a zero. An empty one ("process,,stack") is unknown.
bool keys_parse(const char *text, struct keys *keys, struct err *err)
{
	bool good = true;

	*keys = (struct keys){ 0 };
	if (*text == '\0' || strcmp(text, "none") == 0)
		return true;
	while (good) {
		size_t length = strcspn(text, ",");
		char *word = mem_copy_bytes(text, length);

		good = add(keys, word, err);
		mem_free(word);
		if (text[length] == '\0')
			break;
		text += length + 1;
	}
	return good;
}
