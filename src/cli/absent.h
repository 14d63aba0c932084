// absent: commands and options that this system lacks, and what its users are shown in place of
// another's. Each system has its own list.
#pragma once

// Why there is no such command, or option of record ("--strict-vm"), here, and what to use instead,
// after "NAME is not available on SYSTEM: ". NULL: there is, or nobody knows it.
const char *absent_why(const char *name);

// "Windows"
extern const char absent_system[];

// What a word with blanks is put in, in examples: cmd.exe knows no single quotes.
extern const char absent_quote;

// How gnuplot is had on this system.
extern const char absent_gnuplot[];

// Lines for the help without a command, and for record's: as this system's shell takes them.
extern const char absent_first_examples[], absent_record_examples[], absent_record_notes[];
