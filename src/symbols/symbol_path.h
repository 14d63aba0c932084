// symbol_path: where the symbols of Windows modules are kept, in the syntax of Windows' debuggers.
//
// _NT_SYMBOL_PATH, _NT_ALT_SYMBOL_PATH and _NT_ALTERNATE_SYMBOL_PATH hold elements with ';'
// between them:
//
//     DIR                     a directory; its DIR/NAME, and DIR/pdb/NAME as dbghelp looks
//     srv*STORE*STORE*URL     symbol stores; symsrv*symsrv.dll*STORE*URL is the same
//     cache*STORE             a store
//
// A store has each file under a key: STORE/NAME/KEY/NAME, or STORE/NA/NAME/KEY/NAME (three tiers,
// as index2.txt says); instead of the file there may be file.ptr, a line that says where it is.
// Nothing is fetched from a network: URLs are named in a remark.
#pragma once

#include "symbols/remarks.h"

#include <stdbool.h>
#include <stddef.h>

// { 0 } is an empty path.
struct symbol_path {
	char **folders; // owned; paths of this machine, each once, in the order of the search
	size_t count, capacity;
};

// Add what the environment says.
void symbol_path_add_environment(struct symbol_path *path, struct remarks *remarks);
void symbol_path_fini(struct symbol_path *path);

// A candidate: true if it is the file, and the search ends. `path` is lost after the call.
typedef bool symbol_path_try(void *opaque, const char *path);

// Try what may be the file `name` with `key` (NULL: none) in `folder`: in it, and in the store that
// it may be.
bool symbol_path_look(const char *folder, const char *name, const char *key,
		      struct remarks *remarks, symbol_path_try *attempt, void *opaque);
