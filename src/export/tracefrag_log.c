// tracefrag_log: the text log of tracefrag (report/tracefrag.h), as a file.
#include "export/events.h"

#include "report/tracefrag.h"

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	process_id process;

	if (!events_choose(source, "a log of tracefrag", &process, err))
		return false;
	tracefrag_write(source->asked, process, sink);
	return true;
}

const struct export_format tracefrag_log_format = {
	.name = "tracefrag",
	.brief = "reservations that leave a slot partly unused, as tracefrag listed them",
	.is_text = true,
	.rules = &tracefrag_rules,
	.write = write,
};
