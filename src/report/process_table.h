// process_table: the family tree of what ran, with each process's figures and how it ended.
#pragma once

#include "report/report.h"
#include "report/table/paper.h"

// Write the table and an empty line. Of many processes the heaviest are shown, with those they
// descend from, and the others summed up; all of them where the report shows all rows.
void process_table_write(struct report *report, struct paper *paper);
