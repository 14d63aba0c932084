// script_place: a script's place, which is what its file is called in every trace of its program.
//
// Folders differ from one machine, checkout or virtual environment to the next, and a file's name
// alone may be that of many (utils.py). The path is therefore given from the folder that goes
// with the program on:
//
//     /srv/v2/shop/models.py                               shop/models.py, where /srv/v2/run.py
//                                                          is the script that was started
//     /venv/lib/python3.11/site-packages/pandas/io/sql.py  pandas/io/sql.py
//     /usr/lib/python3.11/json/decoder.py                  json/decoder.py
//     /home/ann/tools/log.py                               log.py
//     /home/ann/tools/__init__.py                          tools/__init__.py
//     <frozen importlib._bootstrap>                        as it is
#pragma once

#include "trace/reader.h"

// Zero is a valid start. The first process's script of which a frame was found, and whose arguments
// have it: `script` is its folder, `work` the folder in which the argument begins.
struct script_place {
	const char *path; // borrowed from the reader; NULL: not found yet
	size_t script_length, work_length;
	frame_id looked; // at frames below
};

// Borrowed: the end of `file`.
const char *script_place_of(struct script_place *place, const struct reader *reader,
			    const char *file);
