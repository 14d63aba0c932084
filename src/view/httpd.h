// httpd: libmicrohttpd, loaded when the viewer is started and not with the program.
//
// It brings gnutls and a dozen libraries more: to load and relocate them takes longer than all
// else at the start of a command, and every recording would pay for it.
//
//     httpd_load(&httpd, err) && httpd.start_daemon(…)
#pragma once

#include "base/err.h"

#include <microhttpd.h>

// clang-format off
// Each is looked up by its name when the library is loaded; its type is the header's.
#define HTTPD_FUNCTIONS(X) \
	X(add_response_header) \
	X(create_response_from_buffer) \
	X(create_response_from_buffer_with_free_callback_cls) \
	X(destroy_response) \
	X(get_connection_info) \
	X(get_connection_values) \
	X(queue_response) \
	X(set_connection_option) \
	X(start_daemon) \
	X(stop_daemon)
// clang-format on

// The library's functions, without their prefix.
// The types and constants come from the library's header, which is needed to build.
struct httpd {
#define X(name) __typeof__(MHD_##name) *name;
	HTTPD_FUNCTIONS(X)
#undef X
};

// Load the library, which stays until the program ends. False: it is missing, or lacks a function,
// as *err says, and *httpd is not to be used.
bool httpd_load(struct httpd *httpd, struct err *err);
