#include "recorder/eh_win32.h"

#include "recorder/cfi.h"
#include "recorder/recording.h"
#include "recorder/text.h"

enum {
	EH_SECTION_BYTES = 40,
	EH_DISCARDABLE = 0x02000000, // the section need not be in memory
	EH_READABLE = 0x40000000,
	EH_CIE_MIN = 16,
};

// Whether a section is .eh_frame. Its name is a letter too long: it is cut, or stands in a table
// which is not in memory. Then what the section begins with tells it: a CIE with augmentation.
static bool eh_is_frames(const uint8_t *section, const uint8_t *frames, uint32_t bytes)
{
	uint32_t flags = text_load32(section + 36);

	if ((flags & EH_DISCARDABLE) || !(flags & EH_READABLE) || bytes < EH_CIE_MIN ||
	    (memcmp(section, ".eh_fram", 8) != 0 && section[0] != '/'))
		return false;
	return text_load32(frames) >= EH_CIE_MIN - 4 && text_load32(frames) < bytes &&
	       text_load32(frames + 4) == 0 && (frames[8] == 1 || frames[8] == 3) &&
	       (frames[9] == 'z' || frames[9] == 0);
}

// The first section that is .eh_frame is the only one: if nothing can be made of it, there is no
// header. The entries are read twice, first for how many bytes the table takes, then into it.
// (Where things are in an image: client_reach.)
uint8_t *eh_make_header(const uint8_t *base, uint32_t bytes, size_t *pages)
{
	const uint8_t *headers = base + text_load32(base + 0x3c);
	uint32_t count = headers[6] | (uint32_t)headers[7] << 8;
	const uint8_t *section = headers + 24 + (headers[20] | (uint32_t)headers[21] << 8);

	for (; count > 0; count--, section += EH_SECTION_BYTES) {
		uint32_t size = text_load32(section + 8), at = text_load32(section + 12);
		uintptr_t code = (uintptr_t)base;
		uint8_t *header = NULL;

		if (at >= bytes || size > bytes - at || !eh_is_frames(section, base + at, size))
			continue;
		*pages = cfi_index(base + at, size, code, code + bytes, NULL);
		if (*pages)
			header = recording_pages(*pages, false);
		if (header)
			cfi_index(base + at, size, code, code + bytes, header);
		return header;
	}
	return NULL;
}
