// config: options from the project's file, tidemark.conf, in front of those of the command line.
//
//     # what continuous integration and the desk agree on
//     [record]
//     reachability = yes
//     [check]
//     max-peak = 100M
//     max-unreachable = 0
//     suppressions = leaks.supp
//
// A section is a command, a key the long name of one of its options, and a value what the option
// takes, or yes or no. The file of the working directory is read, or of the nearest folder above it
// that has one; TIDEMARK_CONF names another, or is empty for none. What is given on the command
// line comes later, and so wins; options that may be given several times add up. Relative paths
// are relative to the working directory, as in options.
//
// A file of another user (but root's) is not believed: it is passed over, and that is said.
#pragma once

#include "base/err.h"
#include "cli/command.h"

// All words of a command: those of the file first.
struct config {
	char **argv;   // owned, and the first words_count of its words
	char **places; // owned: of each of these, "/src/app/tidemark.conf:3"
	int argc, words_count;
};

// False: the file has a section, a key or a value that is none; `err` says where.
bool config_read(struct config *config, const struct command *const *commands,
		 const struct command *command, int argc, char **argv, struct err *err);
void config_fini(struct config *config); // accepts { 0 }
