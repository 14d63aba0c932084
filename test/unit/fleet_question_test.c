// What sql/fleet_question.h says of rows, without a database.
#include "sql/fleet_question.h"

#include "os/thread.h"
#include "test/test.h"

#include <string.h>

static struct sheet_cell began(const struct fleet_row *row)
{
	for (const struct fleet_question_row *question = fleet_question_rows; question->name;
	     question++)
		for (size_t i = 0; i < question->count; i++) {
			const struct sheet_column *column = &question->columns[i];

			if (strcmp(column->name, "began") == 0)
				return column->get(
					&(struct sheet_at){ .row = row, .column = column });
		}
	return sheet_text(NULL);
}

static void *write_another(void *right)
{
	const struct fleet_row row = { .began_unix_ns = UINT64_C(1795766400000000000) };

	*(bool *)right = strcmp(began(&row).text, "2026-11-27 08:00:00") == 0;
	return NULL;
}

// The viewer asks for two answers at a time.
TEST(a_row_keeps_its_date_while_another_thread_writes_one)
{
	const struct fleet_row row = { .began_unix_ns = 0 };
	struct sheet_cell cell = began(&row);
	bool right = false;
	struct thread *thread = thread_start(write_another, &right);

	CHECK(thread != NULL && !cell.unknown);
	thread_join(thread);
	CHECK(right);
	CHECK_STR("1970-01-01 00:00:00", cell.text);
}
