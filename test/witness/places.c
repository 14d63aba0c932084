// What symbols_file says of addresses, one line for each place: for test/windows/symbols.py.
//
//     places PATH [DIRECTORIES] <ADDRESSES
//
// PATH is taken as Windows writes it, whatever it is; what is recorded of the module is nothing
// but that, or the hexadecimal build-id in $PLACES_ID. Addresses are hexadecimal RVAs. For each
// there is a line "=RVA", and then for each place, innermost first, "FUNCTION\tFILE\tLINE".
#include "symbols/symbols_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t read_id(const char *hex, uint8_t id[32])
{
	size_t length = 0;
	unsigned byte;

	for (; hex && length < 32 && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		id[length++] = (uint8_t)byte;
	return length;
}

int main(int argc, char **argv)
{
	struct symbol_path symbol_path = { 0 };
	struct remarks remarks = { 0 };
	struct search search = { .remarks = &remarks, .symbol_path = &symbol_path };
	struct symbols_file_identity identity = { 0 };
	struct places places = { 0 };
	struct symbols_file *file;
	uint8_t id[32];
	char line[64];

	if (argc < 2)
		return 2;
	identity.path = argv[1];
	identity.build_id = id;
	identity.build_id_length = read_id(getenv("PLACES_ID"), id);
	search.directories = argc > 2 ? argv[2] : NULL;
	symbol_path_add_environment(&symbol_path, &remarks);
	file = symbols_file_open(&identity, &search);
	while (fgets(line, sizeof line, stdin)) {
		uint64_t rva = strtoull(line, NULL, 16);

		places_clear(&places);
		symbols_file_find(file, rva, &places);
		printf("=%" PRIx64 "\n", rva);
		for (size_t i = 0; i < places.count; i++)
			printf("%s\t%s\t%u\n",
			       places.items[i].function ? places.items[i].function : "",
			       places.items[i].file ? places.items[i].file : "",
			       places.items[i].line);
	}
	symbols_file_close(file);
	for (size_t i = 0; i < remarks.count; i++)
		fprintf(stderr, "places: %s\n", remarks.lines[i]);
	remarks_fini(&remarks);
	symbol_path_fini(&symbol_path);
	places_fini(&places);
	return 0;
}
