#include "recorder/interpreters_linux.h"

#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "wire/lane_event.h"

// What each exports (a function, or else a variable), and where it says its version (a text; NULL:
// nowhere that can be read). .NET's variables are those of a program that it is part of: a single
// file, or one that was compiled beforehand.
//
// `without`: the variable of the environment by which it is told to have no heap of its own; its
// text follows the name then.
static const struct interpreters_kind {
	const char *name, *function, *variable, *version, *without, *without_text;
} interpreters_kinds[] = {
	{ .name = "ruby", .function = "rb_profile_frames", .version = "ruby_version" },
	{ .name = "php",
	  .function = "zend_mm_get_heap",
	  .without = "USE_ZEND_ALLOC",
	  .without_text = "USE_ZEND_ALLOC=0" },
	{ .name = "node", .function = "_ZN4node5StartEiPPc" },
	// It has Java's function, too.
	{ .name = "GraalVM native image", .function = "graal_create_isolate" },
	{ .name = "java", .function = "JNI_CreateJavaVM" },
	{ .name = "perl", .function = "perl_parse" },
	{ .name = "erlang", .function = "enif_make_atom" },
	{ .name = ".NET", .function = "coreclr_execute_assembly" },
	{ .name = ".NET", .variable = "DotNetRuntimeInfo" },
	{ .name = ".NET", .variable = "DotNetRuntimeDebugHeader" },
};

// As atoi reads it: 0, and what is no number. NULL: it says nothing.
static bool interpreters_says_zero(const char *value)
{
	while (value && (*value == ' ' || *value == '+' || *value == '-' || *value == '0'))
		value++;
	return value && (*value < '1' || *value > '9');
}

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
		if (kind->without && interpreters_says_zero(scope_environment(kind->without)))
			version = kind->without_text;
		notes_language(NOTE_LANGUAGE_NAMED, kind->name, version ? version : "");
	}
}

// An address in the object, if it is any of these, or Python (python.h); else 0.
static uintptr_t interpreters_in(const struct scope_object *object)
{
	enum { COUNT = sizeof(interpreters_kinds) / sizeof(*interpreters_kinds) };
	void *found = scope_find(object, "_PyEval_EvalFrameDefault");

	for (uint32_t i = 0; i < COUNT && !found; i++) {
		const struct interpreters_kind *kind = &interpreters_kinds[i];

		found = kind->function ? scope_find(object, kind->function)
				       : scope_find_data(object, kind->variable);
	}
	return (uintptr_t)found;
}

// Only their objects become modules here. Others do when a stack has them.
void interpreters_meet_all(void)
{
	uint64_t signals = kernel_block_signals();

	recording_lock(&recording_state->code_lock);
	for (const struct scope_object *object = scope_objects(); object; object = object->next) {
		uintptr_t address = interpreters_in(object);

		if (address)
			codemap_find(address);
	}
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
}
