// A label is bytes, mostly a build-id, and a file's name its digits: de ad is "dead". Capital
// letters are not ours, so a name has one label and a label one name.
#include "sql/pieces.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void pieces_file(const uint8_t *label, size_t length, char out[static PIECES_FILE_MAX])
{
	size_t i;

	for (i = 0; i < length && i < PIECES_LABEL_MAX; i++) {
		out[2 * i] = digits[label[i] >> 4];
		out[2 * i + 1] = digits[label[i] & 15];
	}
	out[2 * i] = '\0';
}

// "" is the trace itself, and so no label: 0 too.
size_t pieces_label(const char *file, uint8_t out[static PIECES_LABEL_MAX])
{
	size_t length = strspn(file, digits);

	if (file[length] != '\0' || length % 2 != 0 || length / 2 > PIECES_LABEL_MAX)
		return 0;
	for (size_t i = 0; i < length; i += 2)
		out[i / 2] = (uint8_t)((strchr(digits, file[i]) - digits) << 4 |
				       (strchr(digits, file[i + 1]) - digits));
	return length / 2;
}
