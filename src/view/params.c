// For example "n=20&frame=%5Eparse_&frame=%5Eread_": `n` is taken as a number, both frames by
// params_take_filters, and nothing is left. Encodings are taken off in place, since a text gets no
// longer by that, and the values point into it.
#include "view/params.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

// Take the encoding off, in place: "a%2Bb+c" becomes "a+b c". A zero byte is refused, since it
// would end the text. So is a text that ends within an encoding ("%4"): the zero at its end is no
// digit, and nothing after it is read.
static bool decode(char *text, struct err *err)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		if (*in == '+') {
			*out++ = ' ';
		} else if (*in != '%') {
			*out++ = *in;
		} else {
			int high = str_hex_digit(in[1]);
			int low = high < 0 ? -1 : str_hex_digit(in[2]);

			if (low < 0 || (high == 0 && low == 0))
				return err_set(err, ERR_USAGE,
					       "'%.3s' in the query does not encode a character",
					       in);
			*out++ = (char)(high << 4 | low);
			in += 2;
		}
	}
	*out = '\0';
	return true;
}

// Names and values are separated before their encodings are taken off, so that '&' and '=' that
// were sent as %26 and %3D stay in their value. An empty part ("a=1&&b=2") is passed over, and a
// name without '=' has the value "". After a mistake, too, the text is freed by params_fini.
bool params_parse(struct params *params, const char *query, struct err *err)
{
	char *next;

	*params = (struct params){ 0 };
	if (!query || !*query)
		return true;
	params->text = mem_copy_text(query);
	for (char *part = params->text; part; part = next) {
		char *equals;

		// Cut at '&' first: what follows belongs to the next parameter, whatever is in it.
		next = strchr(part, '&');
		if (next)
			*next++ = '\0';
		if (!*part)
			continue;
		if (params->count == PARAMS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d parameters", PARAMS_MAX);
		equals = strchr(part, '=');
		if (equals)
			*equals++ = '\0';
		if (!decode(part, err) || (equals && !decode(equals, err)))
			return false;
		ASSERT(params->count < PARAMS_MAX);
		params->list[params->count++] =
			(struct params_one){ .name = part, .value = equals ? equals : "" };
	}
	return true;
}

void params_fini(struct params *params)
{
	mem_free(params->text);
	*params = (struct params){ 0 };
}

// All are looked through: a second one is a mistake even where it says the same.
bool params_take(struct params *params, const char *name, const char **value, struct err *err)
{
	ASSERT(name && value);
	*value = NULL;
	for (size_t i = 0; i < params->count; i++) {
		struct params_one *one = &params->list[i];

		if (strcmp(one->name, name) != 0)
			continue;
		if (*value)
			return err_set(err, ERR_USAGE, "'%s' can be given once only", name);
		*value = one->value;
		one->taken = true;
	}
	return true;
}

bool params_take_number(struct params *params, const char *name, uint64_t least, uint64_t most,
			uint64_t *number, struct err *err)
{
	const char *value;
	// *number stays as it was where the parameter is not there: the caller has put what holds
	// then.
	uint64_t found;

	ASSERT(least <= most);
	if (!params_take(params, name, &value, err))
		return false;
	if (!value)
		return true;
	if (!str_parse_count(value, &found) || found < least || found > most)
		return err_set(err, ERR_USAGE,
			       "'%s' is a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name,
			       least, most, value);
	*number = found;
	return true;
}

bool params_take_bytes(struct params *params, const char *name, uint64_t *bytes, struct err *err)
{
	const char *value;

	if (!params_take(params, name, &value, err))
		return false;
	return !value || str_parse_bytes(value, bytes) ||
	       err_set(err, ERR_USAGE, "'%s' is a size such as 4096, 64K or 1.5MiB, not '%s'", name,
		       value);
}

// The words are listed while they are compared, for the answer to a mistake: "'at' is peak or exit,
// not 'end'".
bool params_take_word(struct params *params, const char *name, const char *const *words, int *index,
		      struct err *err)
{
	struct str list = { 0 };
	const char *value;

	ASSERT(words && index);
	if (!params_take(params, name, &value, err))
		return false;
	if (!value)
		return true;
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], value) == 0) {
			str_fini(&list);
			*index = i;
			return true;
		}
		str_format(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
	}
	err_set(err, ERR_USAGE, "'%s' is %s, not '%s'", name, str_get(&list), value);
	str_fini(&list);
	return false;
}

// The index begins as what the flag is, so that one that was not given stays as it is.
bool params_take_flag(struct params *params, const char *name, bool *flag, struct err *err)
{
	static const char *const words[] = { "0", "1", NULL };
	int index = *flag;

	ASSERT(flag);
	if (!params_take_word(params, name, words, &index, err))
		return false;
	*flag = index == 1;
	return true;
}

// Names of filters are those of the command line. A filter may come several times, but for the two
// ends of the window. What is taken already is passed over, and a kind in `without` is not taken,
// so that params_check_taken refuses it as a name that is not known here.
bool params_take_filters(struct params *params, unsigned without, struct selection_words *words,
			 struct err *err)
{
	for (size_t i = 0; i < params->count; i++) {
		struct params_one *one = &params->list[i];

		// `without` is a set of bits by kind.
		for (unsigned kind = 0; kind < SELECTION_KINDS; kind++) {
			bool once = kind == SELECTION_FROM || kind == SELECTION_TO;

			if (one->taken || (without >> kind & 1) ||
			    strcmp(one->name, selection_names[kind]) != 0)
				continue;
			if (once && selection_words_get(words, (enum selection_kind)kind))
				return err_set(err, ERR_USAGE, "'%s' can be given once only",
					       one->name);
			selection_words_add(words, (enum selection_kind)kind, one->value);
			one->taken = true;
		}
	}
	return selection_words_check(words, err);
}

bool params_check_taken(const struct params *params, struct err *err)
{
	for (size_t i = 0; i < params->count; i++)
		if (!params->list[i].taken)
			return err_set(err, ERR_USAGE, "there is no parameter '%s' here",
				       params->list[i].name);
	return true;
}
