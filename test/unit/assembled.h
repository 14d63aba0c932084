// A reader over a trace that a test spells out as text (docs/format.md section 15).
#pragma once

#include "test/test.h"
#include "trace/asm.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// All definitions are known. The caller closes it.
static inline struct reader *assembled_open(const char *text)
{
	const char *path = test_temp_path("assembled.tide");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err err = { 0 };
	struct reader *reader;

	CHECK(fd >= 0);
	asm_read(text, strlen(text), fd, &err);
	CHECK_STR("", err.text);
	close(fd);
	reader = reader_open(path, &err);
	CHECK_STR("", err.text);
	reader_scan(reader);
	return reader;
}
