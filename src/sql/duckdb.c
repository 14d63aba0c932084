// The library is not linked but loaded, so that tidemark works without it. Its C interface is
// declared here, as much as is used: each function is a member of `struct duckdb`, looked up by its
// name. Answers come in chunks of columns; a text of up to 12 bytes is in its place, a longer one
// elsewhere.
#include "sql/duckdb.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/library.h"

#include <stdlib.h>
#include <string.h>

// What DuckDB's C interface calls duckdb_result and duckdb_string_t.
struct duckdb_result {
	uint64_t counts[3];
	void *columns;
	char *error;
	void *internal;
};

struct duckdb_text {
	uint32_t length;
	char begin[4]; // of at most 12 bytes, all of them, into `at`
	const char *at;
};

enum { DUCKDB_SUCCESS = 0, TEXT_INLINE = 12 };

// The functions that are used: name, result, parameters.
#define FUNCTIONS(X)                                                                     \
	X(open, int, (const char *path, void **database))                                \
	X(close, void, (void **database))                                                \
	X(connect, int, (void *database, void **connection))                             \
	X(disconnect, void, (void **connection))                                         \
	X(query, int, (void *connection, const char *sql, struct duckdb_result *result)) \
	X(destroy_result, void, (struct duckdb_result * result))                         \
	X(result_error, const char *, (struct duckdb_result * result))                   \
	X(column_count, uint64_t, (struct duckdb_result * result))                       \
	X(column_name, const char *, (struct duckdb_result * result, uint64_t column))   \
	X(fetch_chunk, void *, (struct duckdb_result result))                            \
	X(destroy_data_chunk, void, (void **chunk))                                      \
	X(data_chunk_get_size, uint64_t, (void *chunk))                                  \
	X(data_chunk_get_vector, void *, (void *chunk, uint64_t column))                 \
	X(vector_get_data, void *, (void *vector))                                       \
	X(vector_get_validity, uint64_t *, (void *vector))

struct duckdb {
	struct library *library;
	void *database, *connection;
#define FIELD(name, result, parameters) result(*name) parameters;
	FUNCTIONS(FIELD)
#undef FIELD
};

// Each is copied as bytes: C has no cast from a pointer to data to one to a function.
static bool find_functions(struct duckdb *duckdb, struct err *err)
{
	const char *missing = NULL;
#define FIND(name, result, parameters)                                        \
	{                                                                     \
		void *found = library_find(duckdb->library, "duckdb_" #name); \
                                                                              \
		memcpy(&duckdb->name, &found, sizeof found);                  \
		missing = found ? missing : "duckdb_" #name;                  \
	}
	FUNCTIONS(FIND)
#undef FIND
	return !missing ||
	       err_set(err, ERR_IO, "DuckDB's library has no %s: it is too old (1.0 or newer)",
		       missing);
}

// TIDEMARK_DUCKDB is a file; without it the system looks for the library by its name.
static bool load(struct duckdb *duckdb, struct err *err)
{
	const char *named = getenv("TIDEMARK_DUCKDB");
	struct str file = { 0 }, why = { 0 };

	library_name("duckdb", &file);
	// A path that was named is tried alone.
	duckdb->library = library_open(named && *named ? named : str_get(&file), &why);
	if (!duckdb->library && named && *named)
		err_set(err, ERR_IO, "cannot load DuckDB: %s (TIDEMARK_DUCKDB)", str_get(&why));
	else if (!duckdb->library)
		err_set(err, ERR_IO,
			"needs DuckDB's library, and there is none: let TIDEMARK_DUCKDB be the "
			"path of its %s (npm's @duckdb/node-bindings-linux-x64 or -win32-x64 has "
			"it)",
			str_get(&file));
	STR_FINI(&file, &why);
	// On a failure in find_functions duckdb_free is called, which uses no function: nothing is
	// open.
	return duckdb->library && find_functions(duckdb, err);
}

static bool begin(struct duckdb *duckdb, struct err *err)
{
	// No path: the database is in memory, and gone with the connection.
	if (duckdb->open(NULL, &duckdb->database) != DUCKDB_SUCCESS ||
	    duckdb->connect(duckdb->database, &duckdb->connection) != DUCKDB_SUCCESS)
		return err_set(err, ERR_IO, "DuckDB cannot make a database in memory");
	return true;
}

struct duckdb *duckdb_new(struct err *err)
{
	struct duckdb *duckdb = mem_alloc(1, sizeof *duckdb);

	if (load(duckdb, err) && begin(duckdb, err))
		return duckdb;
	duckdb_free(duckdb);
	return NULL;
}

// The library is left loaded: its threads may be on their way out.
void duckdb_free(struct duckdb *duckdb)
{
	if (!duckdb)
		return;
	if (duckdb->connection)
		duckdb->disconnect(&duckdb->connection);
	if (duckdb->database)
		duckdb->close(&duckdb->database);
	mem_free(duckdb);
}

// The caller ends the result, where it is true.
static bool query(struct duckdb *duckdb, const char *sql, struct duckdb_result *result,
		  struct err *err)
{
	const char *said;

	memset(result, 0, sizeof *result);
	if (duckdb->query(duckdb->connection, sql, result) == DUCKDB_SUCCESS)
		return true;
	// Its first line; what follows shows the place in the SQL, which is ours.
	said = duckdb->result_error(result);
	err_set(err, ERR_USAGE, "%.*s", said ? (int)strcspn(said, "\n") : 0, said ? said : "");
	duckdb->destroy_result(result);
	return false;
}

bool duckdb_run(struct duckdb *duckdb, const char *sql, struct err *err)
{
	struct duckdb_result result;

	if (!query(duckdb, sql, &result, err))
		return false;
	duckdb->destroy_result(&result);
	return true;
}

// ---- answers ----

// The text of a value, kept behind the others of its row.
static void keep(struct str *row, const struct duckdb_text *text)
{
	// The short text begins in `begin` and goes on in `at`, which is beside it: 4 + 8 bytes.
	const char *bytes = text->length <= TEXT_INLINE ? text->begin : text->at;

	str_add_bytes(row, bytes, text->length);
	str_add_bytes(row, "", 1);
}

// Offsets first and pointers when the row is whole, as its text moves while it grows.
static void tell_rows(struct duckdb *duckdb, void *chunk, size_t columns,
		      const struct duckdb_reader *reader)
{
	const char **values = mem_alloc(columns, sizeof *values);
	size_t *at = mem_alloc(columns, sizeof *at);
	struct str row = { 0 };

	for (uint64_t i = 0; i < duckdb->data_chunk_get_size(chunk); i++) {
		str_clear(&row);
		for (size_t c = 0; c < columns; c++) {
			// A chunk has some thousand rows; its columns are asked for again in each,
			// which is cheap.
			void *vector = duckdb->data_chunk_get_vector(chunk, c);
			const uint64_t *valid = duckdb->vector_get_validity(vector);
			const struct duckdb_text *texts = duckdb->vector_get_data(vector);

			at[c] = SIZE_MAX;
			// A bit for each row; there are none where no value is NULL.
			if (valid && !(valid[i / 64] >> i % 64 & 1))
				continue;
			at[c] = row.length;
			keep(&row, &texts[i]);
		}
		for (size_t c = 0; c < columns; c++)
			values[c] = at[c] == SIZE_MAX ? NULL : row.text + at[c];
		reader->row(reader->context, values, columns);
	}
	str_fini(&row);
	MEM_FREE(values, at);
}

// Names belong to the result: the reader has them until it returns.
static void tell_columns(struct duckdb *duckdb, struct duckdb_result *result, size_t columns,
			 const struct duckdb_reader *reader)
{
	const char **names = mem_alloc(columns, sizeof *names);

	for (size_t c = 0; c < columns; c++)
		names[c] = duckdb->column_name(result, c);
	reader->columns(reader->context, names, columns);
	mem_free(names);
}

bool duckdb_ask(struct duckdb *duckdb, const char *sql, const struct duckdb_reader *reader,
		struct err *err)
{
	struct duckdb_result result;
	size_t columns;
	void *chunk;

	if (!query(duckdb, sql, &result, err))
		return false;
	columns = (size_t)duckdb->column_count(&result);
	tell_columns(duckdb, &result, columns, reader);
	// NULL ends it.
	while ((chunk = duckdb->fetch_chunk(result))) {
		tell_rows(duckdb, chunk, columns, reader);
		duckdb->destroy_data_chunk(&chunk);
	}
	duckdb->destroy_result(&result);
	return true;
}
