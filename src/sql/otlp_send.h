// otlp_send: messages to a collector of OpenTelemetry's, by OTLP over HTTP.
//
// A place is otlp://HOST[:PORT][/PREFIX] (otlps:// with TLS); the port is 4318 if none is said.
// Profiles are posted to PREFIX/v1development/profiles, as protobuf, compressed by gzip unless the
// place says otherwise.
//
// What OpenTelemetry's own programs take from the environment is taken from there:
// OTEL_EXPORTER_OTLP_HEADERS (NAME=VALUE, with commas; a token to be let in belongs there, and no
// message has it) and OTEL_EXPORTER_OTLP_CERTIFICATE (with TLS: who vouches for the collector).
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct otlp_send;

struct otlp_place {
	const char *url;
	bool plain;                  // without gzip
	bool (*stop)(void *context); // asked between two tries, of NULL; NULL: never
};

// Whether the word is such a place at all.
bool otlp_send_is(const char *word);

// Nothing is sent yet. ERR_USAGE: a place or headers that make no sense, a user in the place.
struct otlp_send *otlp_send_new(const struct otlp_place *place, struct err *err);
void otlp_send_free(struct otlp_send *send); // NULL is allowed

// How a message was taken.
struct otlp_said {
	uint64_t bytes;    // that were sent
	uint64_t rejected; // profiles that the collector did not want
	struct str why;    // what it said, of that or of anything; empty: nothing
};

// Post an ExportProfilesServiceRequest, which has the form of ProfilesData. What does not come
// through is tried again with pauses that grow, unless `once`. The caller owns said->why.
bool otlp_send_profiles(struct otlp_send *send, const struct str *message, bool once,
			struct otlp_said *said, struct err *err);

// Whether the last one may come through later: nobody answered, or somebody who is busy.
bool otlp_send_may_retry(const struct otlp_send *send);
