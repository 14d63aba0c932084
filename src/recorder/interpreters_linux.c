#include "recorder/interpreters_linux.h"

#include "recorder/notes.h"
#include "recorder/scope_linux.h"
#include "wire/lane_event.h"

// What each exports, and where it says its version (a text; NULL: nowhere that can be read).
static const struct interpreters_kind {
	const char *function, *name, *version;
} interpreters_kinds[] = {
	{ "rb_profile_frames", "ruby", "ruby_version" },
	{ "zend_mm_get_heap", "php", 0 },
	{ "_ZN4node5StartEiPPc", "node", 0 },
	{ "JNI_CreateJavaVM", "java", 0 },
	{ "perl_parse", "perl", 0 },
	{ "coreclr_execute_assembly", ".NET", 0 },
};

// One file may be several: a server may have Ruby and Perl linked into it. So the others are looked
// for too when one was found.
void interpreters_meet(const struct scope_object *object)
{
	enum { COUNT = sizeof(interpreters_kinds) / sizeof(*interpreters_kinds) };

	for (const struct interpreters_kind *kind = interpreters_kinds;
	     kind < interpreters_kinds + COUNT; kind++) {
		const char *version = 0;

		if (likely(!scope_find(object, kind->function)))
			continue;
		if (kind->version)
			version = scope_find_data(object, kind->version);
		notes_language(NOTE_LANGUAGE_NAMED, kind->name, version ? version : "");
	}
}
