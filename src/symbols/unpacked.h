// unpacked: an ELF file with its debug sections as if nobody had packed them by zstd.
//
// Compilers and linkers pack debug sections (-gz, --compress-debug-sections). libelf unpacks zlib's
// form, and zstd's only from its version 0.189 on; so that names do not depend on that, we do it.
#pragma once

#include "base/err.h"

#include <gelf.h>
#include <stddef.h>

// The bytes of the ELF file `elf`, which `fd` is open on, with such sections unpacked and without
// code and data; `*size_bytes` long, to be given back by unpacked_free. NULL without an error if
// there are none; NULL with *err set if one cannot be unpacked, or is packed in a form that is
// neither zlib's nor zstd's.
void *unpacked_new(Elf *elf, int fd, size_t *size_bytes, struct err *err);
void unpacked_free(void *bytes, size_t size_bytes); // NULL is allowed
