#include "recorder/interpreters_linux.h"

#include "recorder/notes.h"
#include "recorder/scope_linux.h"
#include "wire/lane_event.h"

// What each exports (a function, or else a variable), and where it says its version (a text; NULL:
// nowhere that can be read). .NET's variables are those of a program that it is part of: a single
// file, or one that was compiled beforehand.
static const struct interpreters_kind {
	const char *name, *function, *variable, *version;
} interpreters_kinds[] = {
	{ "ruby", "rb_profile_frames", 0, "ruby_version" },
	{ "php", "zend_mm_get_heap", 0, 0 },
	{ "node", "_ZN4node5StartEiPPc", 0, 0 },
	{ "GraalVM native image", "graal_create_isolate", 0, 0 }, // has Java's function too
	{ "java", "JNI_CreateJavaVM", 0, 0 },
	{ "perl", "perl_parse", 0, 0 },
	{ ".NET", "coreclr_execute_assembly", 0, 0 },
	{ ".NET", 0, "DotNetRuntimeInfo", 0 },
	{ ".NET", 0, "DotNetRuntimeDebugHeader", 0 },
};

// One file may be several: a server may have Ruby and Perl linked into it. So the others are looked
// for too when one was found.
void interpreters_meet(const struct scope_object *object)
{
	enum { COUNT = sizeof(interpreters_kinds) / sizeof(*interpreters_kinds) };

	for (const struct interpreters_kind *kind = interpreters_kinds;
	     kind < interpreters_kinds + COUNT; kind++) {
		const char *version = 0;

		if (likely(kind->function ? !scope_find(object, kind->function)
					  : !scope_find_data(object, kind->variable)))
			continue;
		if (kind->version)
			version = scope_find_data(object, kind->version);
		notes_language(NOTE_LANGUAGE_NAMED, kind->name, version ? version : "");
	}
}
