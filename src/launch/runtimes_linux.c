// For example, with NODE_OPTIONS=--inspect in the environment, --jit makes it "--inspect
// --perf-basic-prof --interpreted-frames-native-stack"; what is not a list of options, as
// PYTHONPERFSUPPORT, is left as it was set.
#include "launch/runtimes_linux.h"

#include "base/mem.h"

#include <string.h>

struct runtimes_variable {
	const char *name;
	const char *value;
	bool adds; // to what is there: a list of options
};

// Java's are left alone by a version that does not know them, and so is Python's.
static const struct runtimes_variable runtimes_variables[] = {
	{ "NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack", true },
	{ "JAVA_TOOL_OPTIONS",
	  "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "
	  "-XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit",
	  true },
	{ "PYTHONPERFSUPPORT", "1", false },
	{ "DOTNET_PerfMapEnabled", "1", false },
};

enum { RUNTIMES_COUNT = sizeof runtimes_variables / sizeof *runtimes_variables };

// The value that `entry` gives it. NULL: it is another variable's.
static const char *runtimes_value(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1
									 : NULL;
}

char **runtimes_environment(char *const *environment, struct str *line)
{
	bool there[RUNTIMES_COUNT] = { false };
	struct str entry = { 0 };
	size_t count = 0;
	char **result;

	while (environment[count] != NULL)
		count++;
	result = mem_alloc(count + RUNTIMES_COUNT + 1, sizeof *result);
	for (size_t i = 0; i < count; i++) {
		str_add(&entry, environment[i]);
		// An environment may have a name twice; getenv finds the first, so only that one is
		// changed.
		for (size_t k = 0; k < RUNTIMES_COUNT; k++) {
			const struct runtimes_variable *variable = &runtimes_variables[k];

			if (there[k] || runtimes_value(environment[i], variable->name) == NULL)
				continue;
			there[k] = true;
			if (variable->adds)
				str_format(&entry, " %s", variable->value);
		}
		result[i] = str_take(&entry);
	}
	str_add(line, "--jit: runtimes are asked to name their generated code by");
	for (size_t k = 0; k < RUNTIMES_COUNT; k++) {
		const struct runtimes_variable *variable = &runtimes_variables[k];

		str_format(line, "%s %s", k > 0 ? "," : "", variable->name);
		if (there[k] && !variable->adds) {
			str_add(line, " (as it was set)");
			continue;
		}
		if (there[k])
			continue;
		str_format(&entry, "%s=%s", variable->name, variable->value);
		result[count++] = str_take(&entry);
	}
	ASSERT(result[count] == NULL && entry.length == 0);
	str_fini(&entry);
	return result;
}
