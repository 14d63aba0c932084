// The tree shows who started whom.
#include "report/process_tree.h"
#include "test/unit/assembled.h"

static void check_tree(const char *trace, const char *expected)
{
	struct reader *reader = assembled_open(trace);
	struct process_tree tree;
	struct str text = { 0 };

	process_tree_init(&tree, reader);
	CHECK_EQ(reader_processes_count(reader), tree.count);
	for (size_t i = 0; i < tree.count; i++) {
		process_tree_lines(&tree, i, &text);
		str_format(&text, "%u\n", reader_process(reader, tree.nodes[i].process)->pid);
	}
	CHECK_STR(expected, str_get(&text));
	str_fini(&text);
	process_tree_fini(&tree);
	reader_close(reader);
}

TEST(process_tree_of_one_is_a_root)
{
	check_tree("process a pid=1\nend\n", "1\n");
}

TEST(process_tree_draws_each_branch_to_its_last_child)
{
	check_tree("process a pid=1\n"
		   "process b pid=2 parent=a\n"
		   "process c pid=3 parent=a\n"
		   "process d pid=4 parent=b\n"
		   "process e pid=5 parent=d\n"
		   "process f pid=6 parent=b\n"
		   "process g pid=7\n"
		   "process h pid=8 parent=c\n"
		   "end\n",
		   "1\n"
		   "├─ 2\n"
		   "│  ├─ 4\n"
		   "│  │  └─ 5\n"
		   "│  └─ 6\n"
		   "└─ 3\n"
		   "   └─ 8\n"
		   "7\n");
}

TEST(process_tree_that_is_very_deep_stays_on_the_page)
{
	struct str trace = { 0 };
	struct reader *reader;
	struct process_tree tree;
	struct str text = { 0 };

	str_add(&trace, "process p0 pid=1\n");
	for (int i = 1; i < 50; i++)
		str_format(&trace, "process p%d pid=%d parent=p%d\n", i, i + 1, i - 1);
	str_add(&trace, "end\n");
	reader = assembled_open(str_get(&trace));
	process_tree_init(&tree, reader);
	CHECK_EQ(50, tree.count);
	CHECK_EQ(49, tree.nodes[49].depth);
	process_tree_lines(&tree, 49, &text);
	CHECK_STR("…                      └─ ", str_get(&text));
	STR_FINI(&text, &trace);
	process_tree_fini(&tree);
	reader_close(reader);
}
