// For example, node's stack of a mapping is OS::Allocate < VirtualMemory < SemiSpace::GrowTo < … <
// main. Its innermost function that asks for itself is v8::base::OS::Allocate: it is of the V8
// heap. A mapping that libuv makes, called from JavaScript, has V8's functions further out, and is
// not.
#include "report/ask/own_heap.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cautions.h"
#include "report/ask/wrappers.h"
#include "trace/defs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// An interpreter is a name and a version ("python 3.12.1"), so beginnings are compared. Python is
// not among these: a report has a line of its own for it (language_heaps). A trace does not
// have the program's environment, so what depends on that is said with its condition.
const char *own_heap_of(const struct trace_process *process)
{
	// `on_linux`: where the program's path begins with a slash, so that more is known.
	static const struct {
		const char *begins, *heap, *on_linux;
	} heaps[] = {
		{ "php USE_ZEND_ALLOC=0",
		  "Zend has none (USE_ZEND_ALLOC=0 is set): its blocks are malloc's", NULL },
		{ "php",
		  "Zend's heap as its mappings of 2 MiB, unless USE_ZEND_ALLOC=0 was set: then it "
		  "has none, and its blocks are malloc's",
		  "Zend's heap as its mappings of 2 MiB" },
		{ "ruby",
		  "its objects' slots (40 bytes and more) as pages, what an object has besides "
		  "block by block",
		  NULL },
		{ "node", "V8's heap as mappings (window --layer vm --by heap)", NULL },
		{ "java", "the collector's heap as mappings (window --layer vm --by heap)", NULL },
		{ "GraalVM", "the collector's heap as mappings (window --layer vm --by heap)",
		  NULL },
		{ ".NET", "the collector's heap as mappings (window --layer vm --by heap)", NULL },
		{ "Go",
		  "what its garbage collector gives out is in no figure, only what C code "
		  "allocates; its own profile (runtime/pprof) has it",
		  "what its garbage collector gives out is in no figure, only what C code "
		  "allocates; its own profile (runtime/pprof) has it; programs that it starts "
		  "without our LD_PRELOAD and TIDEMARK_SESSION in their environment are not "
		  "recorded" },
	};

	for (size_t i = 0; process->interpreter && i < sizeof(heaps) / sizeof(*heaps); i++)
		if (strncmp(process->interpreter, heaps[i].begins, strlen(heaps[i].begins)) == 0)
			return heaps[i].on_linux && process->exe && *process->exe == '/'
				       ? heaps[i].on_linux
				       : heaps[i].heap;
	return NULL;
}

// CPython writes names for perf since 3.12. Of Linux alone, where the program's path begins with a
// slash.
const char *own_heap_jit(const struct reader *reader, const struct trace_process *process)
{
	static const char *const begins[] = { "node", "java", ".NET" };
	unsigned minor = 0;
	bool generates;

	ASSERT(reader && process);
	if (!process->interpreter || process->interpreter_read || *process->exe != '/' ||
	    cautions_is_import(reader_info(reader)) ||
	    defs_has_word(reader_info(reader)->options, "jit"))
		return NULL;
	generates = sscanf(process->interpreter, "python 3.%u", &minor) == 1 && minor >= 12;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		generates |= strncmp(process->interpreter, begins[i], strlen(begins[i])) == 0;
	if (strcmp(process->interpreter, "erlang") == 0)
		return "record --jit with ERL_FLAGS=\"+JPperf true\" in the environment (OTP 24 "
		       "and later) has its functions in the stacks";
	return generates ? "record --jit has its functions in the stacks" : NULL;
}

// "" begins itself alone.
static bool own_heap_begins(const char *text, const char *beginning)
{
	return *beginning ? strncasecmp(text, beginning, strlen(beginning)) == 0 : !*text;
}

// "deno" is the name of deno and of Deno.exe.
static bool own_heap_is_program(const char *file, const char *program)
{
	size_t length = strlen(program);

	return strncasecmp(file, program, length) == 0 &&
	       (!file[length] || strcasecmp(file + length, ".exe") == 0);
}

// A row of the table: all that is given must hold.
struct own_heap {
	const char *heap;
	const char *function; // a pattern; NULL: any, and of a file without symbols all of them
	const char *module;   // how its file's name begins; "": it is in none; NULL: any
	const char *language; // how the interpreter's name begins; NULL: any
};

// An allocator that is inside of the file, and whose calls are not seen: what the file maps is its.
// The texts are constants.
static const char *own_heap_hidden(const char *file, const struct trace_process *process)
{
	static const struct {
		const char *name, *heap;
	} known[] = {
		{ "jemalloc", "jemalloc" },
		{ "mimalloc", "mimalloc" },
		{ "tcmalloc", "tcmalloc" },
		{ "Go", "Go heap" },
	};

	for (uint32_t i = 0; process && i < process->allocators_count; i++) {
		const struct trace_allocator *each = &process->allocators[i];

		if (each->seen != TRACE_SEEN_STRIPPED ||
		    strcmp(file, str_last_part(each->file ? each->file : process->exe)) != 0)
			continue;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (strcmp(each->name, known[k].name) == 0)
				return known[k].heap;
	}
	return NULL;
}

// In place of a file's name: that of the process's program.
#define OWN_HEAP_PROGRAM "/"

static bool own_heap_has_module(const char *module, const char *file,
				const struct trace_process *process)
{
	if (strcmp(module, OWN_HEAP_PROGRAM) == 0)
		return process && process->exe && strcmp(file, str_last_part(process->exe)) == 0;
	return own_heap_begins(file, module);
}

// Where a file maps nothing but its heap, the file is enough.
static const char *own_heap_find(const struct symbol *symbol, const struct trace_process *process)
{
	static const struct own_heap heaps[] = {
		{ "V8 heap", "v8::*", NULL, NULL },
		{ "Java VM", NULL, "libjvm.so", NULL },
		{ "Java VM", NULL, "jvm.dll", NULL },
		{ "GraalVM heap", NULL, OWN_HEAP_PROGRAM, "GraalVM" },
		{ ".NET heap", NULL, "libcoreclr.so", NULL },
		{ ".NET heap", NULL, "libclrgc.so", NULL },
		{ ".NET heap", NULL, "coreclr.dll", NULL },
		{ ".NET heap", NULL, "clrgc.dll", NULL },
		{ ".NET heap", NULL, "clr.dll", NULL },
		{ ".NET heap", NULL, OWN_HEAP_PROGRAM, ".NET" },
		{ "Zend heap", "zend_mm_*", NULL, NULL },
		{ "Zend heap", NULL, "php", "php" },
		{ "Zend heap", NULL, "libphp", "php" },
		{ "Ruby VM", NULL, "libruby", NULL },
		{ "Ruby VM", NULL, "msvcrt-ruby", NULL },
		{ "Ruby VM", NULL, "x64-msvcrt-ruby", NULL },
		{ "Ruby VM", NULL, "x64-ucrt-ruby", NULL },
		{ "Python heap", "_PyObject_Arena*", NULL, NULL },
		{ "Python heap", "_PyMem_Arena*", NULL, NULL },
		{ "Python heap", NULL, "python3", "python" },
		{ "Python heap", NULL, "libpython3", "python" },
		{ "Python heap", NULL, "", "python" },
		{ "SBCL heap", "os_alloc_gc_space", NULL, NULL },
		{ "SBCL heap", "os_validate*", NULL, NULL },
		{ "Haskell heap", "osCommitMemory", NULL, NULL },
		{ "Haskell heap", "my_mmap*", NULL, NULL },
		{ "OCaml heap", "caml_mem_*", NULL, NULL },
		{ "Erlang heap", "erts_mmap*", NULL, NULL },
		{ "Go heap", "x_cgo_mmap", NULL, NULL },
		{ "Go heap", "runtime.*", NULL, NULL },
		{ "Mono heap", "mono_valloc*", NULL, NULL },
		{ "Chez Scheme heap", "S_getmem", NULL, NULL },
		{ "Boehm GC", NULL, "libgc.so", NULL },
		{ "Nim heap", "requestOsChunks*", NULL, NULL },
		{ "D heap", "core.internal.gc.*", NULL, NULL },
		{ "D heap", "_D4core8internal2gc*", NULL, NULL },
		{ "GAP heap", "SyAllocBags", NULL, NULL },
		{ "CLISP heap", NULL, "lisp.run", NULL },
		{ "Prolog stacks", NULL, "libswipl.so", NULL },
		{ "LuaJIT", "lj_alloc_*", NULL, NULL },
		{ "LuaJIT", NULL, "luajit", NULL },
		{ "LuaJIT", NULL, "libluajit", NULL },
		{ "Julia heap", "jl_gc_*", NULL, NULL },
		{ "SpiderMonkey heap", "js::gc::*", NULL, NULL },
		{ "SpiderMonkey heap", NULL, "libmozjs-", NULL },
		{ "WebKit's bmalloc", "pas_page_malloc_*", NULL, NULL },
		{ "PartitionAlloc", "partition_alloc::*", NULL, NULL },
		// Where these are entered, their mappings are an allocator's that is seen, and not
		// asked for here: so it is not on Windows.
		{ "mimalloc", "mi_*", NULL, NULL },
		{ "mimalloc", "_mi_*", NULL, NULL },
		{ "mimalloc", NULL, "mimalloc.dll", NULL },
		{ "mimalloc", NULL, "mimalloc-", NULL },
		{ "jemalloc", "je_*", NULL, NULL },
		{ "jemalloc", "_rjem_*", NULL, NULL },
		{ "jemalloc", NULL, "jemalloc", NULL },
		{ "tcmalloc", "tcmalloc::*", NULL, NULL },
		{ "tcmalloc", NULL, "tcmalloc", NULL },
		{ "tcmalloc", NULL, "libtcmalloc", NULL },
		{ "TBB's malloc", "rml::*", NULL, NULL },
		{ "TBB's malloc", NULL, "tbbmalloc", NULL },
	};
	// Programs that are shipped without symbols, by their names: they map for nothing else.
	static const struct {
		const char *file, *heap;
	} programs[] = {
		{ "node", "V8 heap" },
		{ "deno", "V8 heap" },
		{ "bun", "JavaScriptCore, mimalloc" },
		{ "dart", "Dart heap" },
		{ "dartvm", "Dart heap" },
		{ "dartaotruntime", "Dart heap" },
		{ "flutter_windows.dll", "Dart heap" },
	};
	// The first row that fits counts.
	const char *file = str_last_part(symbol->module);
	const char *language = process ? process->interpreter : NULL;
	bool named = names_is_named(symbol);

	for (size_t i = 0; !named && i < sizeof(programs) / sizeof(*programs); i++)
		if (own_heap_is_program(file, programs[i].file))
			return programs[i].heap;

	for (size_t i = 0; i < sizeof(heaps) / sizeof(*heaps); i++) {
		const struct own_heap *heap = &heaps[i];

		if (heap->function && !wrappers_match_pattern(heap->function, symbol->function))
			continue;
		if (heap->module && !own_heap_has_module(heap->module, file, process))
			continue;
		if (!heap->language || (language && own_heap_begins(language, heap->language)))
			return heap->heap;
	}
	// A program of Go's without its symbols.
	if (!named && language && strcmp(language, "Go") == 0 &&
	    strcmp(file, str_last_part(process->exe)) == 0)
		return "Go heap";
	return named ? NULL : own_heap_hidden(file, process);
}

// From the innermost function to the first that is no wrapper, and no further: what calls that
// asked for something else.
const char *own_heap_mapped(struct names *names, const struct trace_process *process,
			    stack_id stack)
{
	struct names_stack lines = names_stack(names, stack);
	const char *heap = NULL;

	for (size_t i = 0; i < lines.count && i <= lines.inner && !heap; i++)
		heap = own_heap_find(lines.lines[i].symbol, process);
	return heap;
}

// Who hands a block of malloc's out in pieces: from the innermost function outwards all are of the
// library, and one among them, which is not the first, is `asked`. `direct`: one that asks malloc
// for the caller (NULL: none).
static const struct own_heap_slabs {
	const char *name, *module, *asked, *direct;
} own_heap_slabs_kinds[] = {
	{ "GLib's slices", "libglib-2.0.", "g_slice_alloc*", "g_malloc*" },
	{ "Tcl's allocator", "libtcl8.", "Tclp*lloc", NULL },
};

static bool own_heap_is_slab(const struct names_stack *lines, const struct own_heap_slabs *kind)
{
	ASSERT(kind->module && kind->asked);
	for (size_t i = 0; i < lines->count; i++) {
		const struct symbol *symbol = lines->lines[i].symbol;

		if (!own_heap_begins(str_last_part(symbol->module), kind->module) ||
		    (kind->direct && wrappers_match_pattern(kind->direct, symbol->function)))
			return false;
		if (wrappers_match_pattern(kind->asked, symbol->function))
			return i > 0;
	}
	return false;
}

const char *own_heap_slabs(struct names *names, stack_id stack)
{
	enum { COUNT = sizeof(own_heap_slabs_kinds) / sizeof(*own_heap_slabs_kinds) };
	struct names_stack lines = names_stack(names, stack);

	for (size_t i = 0; i < COUNT; i++)
		if (own_heap_is_slab(&lines, &own_heap_slabs_kinds[i]))
			return own_heap_slabs_kinds[i].name;
	return NULL;
}

const char *own_heap_operators(const struct trace_process *process)
{
	for (uint32_t i = 0; process && i < process->allocators_count; i++)
		if (process->allocators[i].seen == TRACE_SEEN_OPERATORS)
			return process->allocators[i].file ? process->allocators[i].file
							   : process->exe;
	return NULL;
}

bool own_heap_by_operators(struct names *names, stack_id stack, const char *file)
{
	struct names_stack lines = names_stack(names, stack);

	ASSERT(names && file);
	for (size_t i = 0; i < lines.count; i++) {
		const struct symbol *symbol = lines.lines[i].symbol;

		if (symbol->function && strcmp(symbol->module, file) == 0 &&
		    strncmp(symbol->function, "operator new", strlen("operator new")) == 0)
			return true;
	}
	return false;
}

const char *own_heap_advice(const char *heap, bool windows)
{
	if (strcmp(heap, "Python heap") == 0)
		return windows ? "record it with PYTHONMALLOC=malloc in its environment: each "
				 "object there is then a block of malloc's"
			       : "record it with --language-heaps, which tells of each object "
				 "there";
	if (strcmp(heap, "Zend heap") == 0)
		return "record it with USE_ZEND_ALLOC=0 in its environment: each block there is "
		       "then one of malloc's";
	if (strcmp(heap, "Nim heap") == 0)
		return "build it with -d:useMalloc: each block is then one of malloc's";
	return "look at the layer of virtual memory by heap and stack; what is in a runtime's heap "
	       "only its own tools say (a heap snapshot, a dump)";
}

// "python3.11", "libpython3.11.so.1.0".
static bool is_python(const char *path)
{
	const char *name = str_last_part(path);

	return strncmp(name, "python3", 7) == 0 || strncmp(name, "libpython3.", 11) == 0;
}

// By the innermost line of a script, if there is one. Only lines have names in a recorded trace;
// those of the import system are of files like "<frozen importlib._bootstrap>". For example:
//
//     PyList_New < Py_InitializeFromConfig < main         the interpreter, for itself
//     PyBytes_New < _call_with_frames_removed < app.py    to load a module
//     PyList_New < keep (app.py) < <module> (app.py)      a script
//
// Who has lines needs no module of Python's: calls of the interpreter between lines are not in the
// stack, and an extension may be all that is innermost.
enum own_heap_asker own_heap_asker(const struct reader *reader, stack_id stack)
{
	static const char importer[] = "<frozen importlib";
	enum own_heap_asker asker = OWN_HEAP_INTERPRETER;
	bool python = false;

	for (stack_id id = stack; id;) {
		const struct trace_stack *at = reader_stack(reader, id);
		const struct trace_frame *frame = at ? reader_frame(reader, at->frame) : NULL;
		const struct trace_name *names;
		size_t count;

		if (!frame)
			break;
		names = reader_frame_names(reader, at->frame, &count);
		if (frame->module)
			python |= is_python(reader_module(reader, frame->module)->path);
		else if (names && asker == OWN_HEAP_INTERPRETER)
			asker = strncmp(names[0].file, importer, sizeof importer - 1) == 0
					? OWN_HEAP_IMPORT
					: OWN_HEAP_SCRIPT;
		id = at->parent < id ? at->parent : 0;
	}
	return python || asker != OWN_HEAP_INTERPRETER ? asker : OWN_HEAP_OTHER;
}

// Told by names of modules, since a recording without --language-heaps has no event of such a heap.
enum own_heap_language own_heap_languages(const struct query_context *asked)
{
	const struct query *query = &asked->selection.query;
	enum own_heap_language found = OWN_HEAP_NO_LANGUAGE;

	ASSERT(asked->reader);
	for (module_id id = 1; id < reader_modules_count(asked->reader); id++) {
		const struct trace_module *module = reader_module(asked->reader, id);

		if (module && query_has_process(query, module->process) && is_python(module->path))
			found = OWN_HEAP_NOT_RECORDED;
	}
	for (heap_id id = 1; id < reader_heaps_count(asked->reader); id++) {
		const struct trace_heap *heap = reader_heap(asked->reader, id);

		if (reader_heap_is_language(heap) && query_has_process(query, heap->process))
			found = OWN_HEAP_RECORDED;
	}
	return found;
}
