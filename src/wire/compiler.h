// compiler: the few words that compilers spell differently.
#pragma once

// How often a condition holds: nearly always, or nearly never. It decides which code goes straight
// on.
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
// A function of the slow ways: apart from the hot code, and never put into its caller.
#define COLD __attribute__((cold, noinline))
// Whether other files of the program find the name. What is HIDDEN can be called and read without
// the tables by which symbols are bound; all of the recorder is, but what programs are to find by
// name.
#ifdef _WIN32
#define HIDDEN // what is not exported is hidden
#define EXPORT __attribute__((dllexport))
#else
#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#endif
