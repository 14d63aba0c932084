// compiler: the few words that compilers spell differently.
#pragma once

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define COLD __attribute__((cold, noinline))
#ifdef _WIN32
#define HIDDEN // what is not exported is hidden
#define EXPORT __attribute__((dllexport))
#else
#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#endif
