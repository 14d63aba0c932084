// fpo_win32: the PDB of an image that the program has loaded.
#pragma once

#include "recorder/fpo.h"

struct nt_text;

// What the PDB says that is beside the image, or else where the linker wrote it, if that is on a
// drive. `image` is the image's path, `pdb` what the image says of its PDB, both borrowed for the
// call. NULL: there is none that fits, or it cannot be read. The caller holds code_lock.
HIDDEN struct fpo_table *fpo_load(const struct nt_text *image, const char *pdb, uint32_t pdb_bytes,
				  const uint8_t id[FPO_ID_BYTES], uint32_t image_bytes);
