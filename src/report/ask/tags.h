// tags: names for stacks, by a file of stack tags as Windows Performance Analyzer reads them.
//
//     <Tag Name="">
//       <Tag Name="Images" Priority="10">
//         <Entrypoint Module="libpng*.so*" Method="png_*"/>
//       </Tag>
//       <HintTag Name="Callbacks" HintOperator="Callee">
//         <Entrypoint Module="*" Method="run_callback"/>
//       </HintTag>
//     </Tag>
//
// A frame's tag is the first in the file with an entry point whose module (the file's name) and
// method (the function, without its parameters) match, `*` standing for anything, letters without
// regard to case; a missing attribute matches everything. A stack's tag is that of its frames with
// the highest priority (default 0); of equals the innermost. Tags inside tags have all their
// names, with a backslash between. A hint tag names the frame that it calls (Callee) or is called
// by (Caller): the tag is then NAME\MODULE, or NAME\MODULE\FUNCTION with OnlyShowModule="false".
// After the public documentation ("Stack Tags", Windows Performance Toolkit).
//
// The file is untrusted: entities that it declares are not expanded, elements are at most 64 deep.
#pragma once

#include "base/str.h"
#include "report/ask/names.h"

struct tags;

// From the text of such a file. NULL with ERR_FORMAT: line, column and what is wrong.
struct tags *tags_read(const char *text, size_t length, struct err *err);
void tags_free(struct tags *tags); // NULL is allowed

// Append the stack's tag, "Images\Decode". False, and nothing appended, if it has none.
bool tags_find(const struct tags *tags, const struct names_stack *stack, struct str *tag);
