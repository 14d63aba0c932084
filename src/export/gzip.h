// gzip: compresses what is written (RFC 1952, by zlib) into a sink.
//
//     gzip_begin
//       gzip_write     any number of times
//     gzip_end         flushes; gives all back
//
// A failure of the sink is the sink's to report.
#pragma once

#include "base/sink.h"

struct gzip;

struct gzip *gzip_begin(struct sink *sink); // borrowed until gzip_end
void gzip_write(struct gzip *gzip, const void *bytes, size_t length);
void gzip_end(struct gzip *gzip);
