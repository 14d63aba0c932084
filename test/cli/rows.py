#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`tidemark export --format parquet` and `tidemark sql`: tables as docs/schema/rows.md describes them, the
same for each reader of Parquet, and the figures of `tidemark window` and its like."""
import csv
import io
import json
import os
import subprocess

from libanswer import SOURCE, answer, assemble, make, refused, run, sampled
from libtests import check, equal, main, test
from librows import columns, databases, questions, sql

TYPES = {"text": "VARCHAR", "u32": "UINTEGER", "u64": "UBIGINT", "double": "DOUBLE", "list of u32": "UINTEGER[]"}
NEVER = 2**64 - 1


def traces():
    """Texts with a little of everything, and calls at random of two threads."""
    return [assemble("kitchen"), assemble("family"), make("random.tide", 300, 500, 20_000)]


def export(path, *words):
    folder = path.replace(".tide", ".rows")
    run("export", path, "--format", "parquet", "-o", folder, "--force", *words)
    return folder


def ask(number, path, window=(0, 0), old=""):
    text = questions()[number].replace("FROM_NS", str(window[0])).replace("TO_NS", str(window[1]))
    return sql(*([path] if isinstance(path, str) else path), text.replace("OLD", old))


def windows(path):
    """Edges, and the words that ask for them."""
    for words in (("--from", "20%", "--to", "70%"),):
        found = answer("window", path, "--by", "none", *words)
        yield (found["from_ns"], found["to_ns"]), words


def by(path, key, words, *fields):
    """Rows of a window by key: those that have something of the fields."""
    rows = {}
    for row in answer("window", path, "--by", key, "--rows", "100000", *words)["rows"]:
        values = [row[field] for field in fields]
        if any(values):
            name = row["keys"][key]
            rows[name] = [a + b for a, b in zip(rows.get(name, [0] * len(values)), values)]
    return rows


def grouped(rows, key, *fields):
    found = {}
    for row in rows:
        found[row[key]] = [a + row[field] for a, field in zip(found.get(row[key], [0] * len(fields)), fields)]
    return found


@test
def the_tables_are_those_of_the_document():
    databases()
    for path in traces()[:1]:
        for table, expected in columns().items():
            found = sql(path, f"DESCRIBE {table}")
            equal([(name, TYPES[kind]) for name, kind in expected],
                  [(row["column_name"], row["column_type"]) for row in found], table)


@test
def another_reader_of_parquet_reads_the_same():
    home = databases()
    for path in traces()[::2]:
        folder = export(path)
        for table, kinds in columns().items():
            found = json.loads(subprocess.run(
                ["node", os.path.join(SOURCE, "test/lib/librows.mjs"), home, f"{os.getcwd()}/{folder}/{table}.parquet"],
                check=True, capture_output=True).stdout)
            expected = sql(folder, f"SELECT * FROM {table}")
            for row in expected:
                for name, kind in kinds:
                    row[name] = str(row[name]) if kind == "u64" else row[name]
            equal(expected, found, (path, table))


@test
def a_table_alone_is_that_of_the_folder():
    path = traces()[-1]
    folder = export(path)
    for table in columns():
        alone = subprocess.run([os.environ["TIDEMARK"], "export", path, "--format", "parquet", "--table", table],
                               check=True, capture_output=True).stdout
        with open(f"{folder}/{table}.parquet", "rb") as file:
            check(file.read() == alone, table)


@test
def filters_and_windows_choose_allocations():
    databases()
    path = traces()[-1]
    for words in (("--size", "..100"), ("--from", "20%", "--to", "40%"), ("--impact", "transient")):
        total = answer("window", path, "--by", "none", *words)["total"]
        found = sql(export(path, *words), "SELECT count(*) AS count, sum(size) AS size FROM allocations")[0]
        equal([total["count"], total["size"]], [found["count"], found["size"]], words)


@test
def a_row_group_says_what_times_are_in_it():
    databases()
    folder = export(make("many.tide", 300, 500, 1_200_000))
    groups = sql(folder, f"SELECT row_group_id, stats_min_value AS least, stats_max_value AS most, encodings FROM "
                 f"parquet_metadata('{folder}/allocations.parquet') WHERE path_in_schema = 'begin_ns'")
    check(len(groups) > 2, groups)
    for group in groups:
        rows = sql(folder, f"SELECT min(begin_ns) AS least, max(begin_ns) AS most FROM (SELECT begin_ns, "
                   f"file_row_number // 262144 AS part FROM read_parquet('{folder}/allocations.parquet', "
                   f"file_row_number = true)) WHERE part = {group['row_group_id']}")[0]
        equal([str(rows["least"]), str(rows["most"])], [group["least"], group["most"]])
        check("DELTA_BINARY_PACKED" in group["encodings"], group)


# ---- the questions of the howto ----

@test
def question_1_is_the_whole_run():
    databases()
    for path in traces():
        total = answer("window", path)["total"]
        row = ask(1, path)[0]
        equal([total["allocated_count"], total["allocated"], total["freed_count"],
               total["impacting_size"]],
              [row["allocated_count"], row["allocated"] or 0, row["freed_count"], row["impacting_size"] or 0], path)


@test
def questions_2_to_11_are_those_of_a_window():
    databases()
    for path in traces():
        for window, words in windows(path):
            def same(number, key, fields, *more, name=None):
                expected = by(path, key, (*words, *more), *fields)
                found = grouped(ask(number, path, window), name or key, *fields)
                equal(expected, {row: values for row, values in found.items() if any(values)}, (path, number, words))

            same(2, "type", ("count", "size"))
            same(3, "function", ("allocated_count", "allocated"))
            # Impacting is what was freed of before, too.
            impacting = by(path, "function", (*words, "--impact", "impacting"), "allocated_count", "allocated")
            equal(impacting, grouped(ask(4, path, window), "function", "count", "size"), (path, words))
            same(5, "function", ("count", "size"), "--impact", "transient")
            same(6, "process", ("allocated_count", "allocated"), name="pid")
            same(7, "thread", ("allocated_count", "allocated"), name="tid")
            same(8, "heap", ("allocated_count", "allocated"))
            same(9, "size", ("allocated_count", "allocated"))
            same(11, "module", ("allocated_count", "allocated"))
            powers = {}
            for size, (count, _) in by(path, "size", words, "allocated_count", "allocated").items():
                power = 1 << size.bit_length() - 1 if size else 0
                powers[power] = powers.get(power, 0) + count
            equal(powers, {row["from_size"]: row["allocated_count"] for row in ask(10, path, window)}, path)


@test
def questions_12_to_14_are_the_level():
    databases()
    for path in traces():
        heap = answer("report", path)["heap"]
        row = ask(13, path)[0]
        equal([heap["peak_bytes"], heap["peak_ns"]], [row["peak_bytes"], row["peak_ns"]], path)
        curve = ask(14, path)
        for at in (20, 50, 90):
            found = answer("active", path, "--at", f"{curve[at - 1]['ns']}ns")
            equal(found["heap"]["bytes"], curve[at - 1]["bytes"], (path, at))
            equal(found["heap"], ask(12, path, (0, curve[at - 1]["ns"]))[0], (path, at))


@test
def questions_15_to_17_and_19_are_those_of_all_lifetimes():
    databases()
    for path in traces():
        lines = list(csv.DictReader(io.StringIO(run("export", path, "--format", "csv", "--lifetimes").stdout)))
        window = answer("window", path)
        ended = [int(line["end_ns"]) - int(line["begin_ns"]) for line in lines
                 if line["end"] in ("free", "realloc", "lost", "destroy")]
        rows = ask(15, path, (-1, NEVER - 1))
        equal(len(ended), sum(row["count"] for row in rows))
        equal([min(ended), max(ended)], [min(row["shortest_ns"] for row in rows), max(row["longest_ns"] for row in rows)])
        equal(answer("report", path)["heap"]["reallocations"],
              sum(row["reallocations"] for row in ask(16, path)), path)
        equal(by(path, "function", ("--impact", "impacting"), "count", "size"),
              {name: values for name, values in grouped(ask(17, path), "function", "count", "size").items()
               if any(values)}, path)
        held = sum(int(line["size"]) * (int(line["end_ns"] or window["to_ns"]) - int(line["begin_ns"])) for line in lines)
        check(abs(held / 1e9 - sum(row["byte_seconds"] for row in ask(19, path))) <= 1e-6 * held / 1e9 + 1e-9, path)


@test
def question_18_is_the_folded_export():
    databases()
    for path in traces():
        expected = {}
        for line in run("export", path, "--format", "folded", "--value", "allocated").stdout.splitlines():
            folded, value = line.rsplit(" ", 1)
            expected[folded.split(";", 1)[1]] = expected.get(folded.split(";", 1)[1], 0) + int(value)
        found = {}
        for row in ask(18, path):
            found[row["path"]] = found.get(row["path"], 0) + row["allocated"]
        equal(expected, found, path)


@test
def question_20_is_what_two_runs_differ_by():
    databases()
    old = make("old.tide", 30, 50, 2_000)
    new = make("new.tide", 30, 50, 4_000)
    names = [row["trace"] for row in sql(old, "SELECT trace FROM runs") + sql(new, "SELECT trace FROM runs")]
    if names[0] == names[1]:
        check("one recording" in refused("sql", old, new, "SELECT 1"))
        new = assemble("kitchen")
    total = answer("window", new)["total"]["allocated"] - answer("window", old)["total"]["allocated"]
    no_stack = [sql(path, "SELECT coalesce(sum(size), 0) AS s FROM allocations WHERE stack = 0")[0]["s"]
                for path in (new, old)]
    equal(total - no_stack[0] + no_stack[1], sum(row["grew_by"] for row in ask(20, [old, new], old=names[0])))


# ---- answers, and what is refused ----

@test
def what_an_attached_process_had_before_is_no_allocation():
    databases()
    path = assemble("before", "process p pid=7 start=attach\nthread t p tid=7\n+0us t before 0x1000 10\n"
                    "+0us t before 0x2000 20\n+100us t malloc 0x3000 30\n+100us t free 0x1000\nend\n")
    equal([10, 20, 0], [row["usable"] for row in sql(path, "SELECT usable FROM allocations ORDER BY address")])
    equal([["before", 0, 200_000], ["before", 0, NEVER], ["malloc", 100_000, NEVER]],
          [list(row.values()) for row in sql(path, "SELECT kind, begin_ns, end_ns FROM allocations ORDER BY address")])


@test
def what_lived_before_a_window_is_no_allocation_of_a_trimmed_trace():
    databases()
    path = assemble("whole", "process p pid=7\nthread t p tid=7\n+0us t malloc 0x1000 10\n+0us t malloc 0x2000 20\n"
                    "+1000us t malloc 0x3000 30\n+1000us t free 0x1000\nend\n")
    run("trim", path, "--from", "500us", "-f", "-o", "part.tide")
    equal([["before", 10], ["before", 20], ["malloc", 30]],
          [list(row.values()) for row in sql("part.tide", "SELECT kind, size FROM allocations ORDER BY address")])
    total = answer("window", "part.tide")["total"]
    equal([total["allocated_count"], total["allocated"]],
          list(sql("part.tide", "SELECT count(*) AS n, sum(size) AS s FROM allocations WHERE kind <> 'before'")[0].values()))


@test
def an_answer_is_a_table_csv_json_or_parquet():
    databases()
    path = assemble("kitchen")
    question = "SELECT 1 AS one, 'a,\"b\"' AS text, NULL AS none, [1, 2] AS list; "
    equal("one  text   none  list\n  1  a,\"b\"        [1, 2]\n", run("sql", path, question).stdout)
    equal('one,text,none,list\n1,"a,""b""",,"[1, 2]"\n', run("sql", path, question, "--csv").stdout)
    equal([{"one": 1, "text": 'a,"b"', "none": None, "list": [1, 2]}], sql(path, question))
    run("sql", path, question, "--parquet", "-o", "answer.parquet")
    equal([{"one": 1}], sql(path, "SELECT one FROM 'answer.parquet'"))


@test
def what_cannot_be_asked_is_refused_and_leaves_nothing():
    databases()
    path = assemble("kitchen")
    check("Parser Error" in refused("sql", path, "SELEC 1"))
    check("nosuch" in refused("sql", path, "SELECT * FROM nosuch"))
    check("--parquet needs -o" in refused("sql", path, "SELECT 1", "--parquet"))
    refused("sql", path, "SELECT 1; DROP VIEW runs")
    refused("sql", path, "SELEC 1", "--json")
    refused("sql", path)
    refused("sql", "missing.tide", "SELECT 1", code=3)
    refused("sql", path, "SELEC 1", "--parquet", "-o", "none.parquet")
    refused("sql", path, "SELEC 1", "--csv", "-o", "none.csv")
    check(not [name for name in os.listdir(".") if name.startswith(("none", "tidemark-"))], os.listdir("."))


@test
def without_duckdb_a_line_says_how_to_get_it():
    done = run("sql", assemble("kitchen"), "SELECT 1", check=3, env={"TIDEMARK_DUCKDB": ""})
    check("TIDEMARK_DUCKDB" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    done = run("sql", assemble("kitchen"), "SELECT 1", check=3, env={"TIDEMARK_DUCKDB": "/missing.so"})
    check("/missing.so" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


@test
def a_folder_of_tables_appears_whole_and_replaces_only_tables():
    path = assemble("kitchen")
    check("-o FOLDER" in refused("export", path, "--format", "parquet"))
    check("--table" in refused("export", path, "--format", "csv", "--table", "runs"))
    run("export", path, "--format", "parquet", "-o", "there/")
    check("exists already" in refused("export", path, "--format", "parquet", "-o", "there", code=3))
    run("export", path, "--format", "parquet", "-o", "there", "--force")
    with open("there/mine.txt", "w", encoding="ascii"):
        pass
    check("not tables" in refused("export", path, "--format", "parquet", "-o", "there", "--force"))
    equal(len(columns()) + 1, len(os.listdir("there")))
    refused("export", path, "--format", "parquet", "-o", "missing/there", code=3)
    check(not [name for name in os.listdir(".") if name.endswith(".part")], os.listdir("."))


@test
def a_column_may_have_more_texts_than_a_dictionary_has_room_for():
    databases()
    count = 70_000
    with open("texts.txt", "w", encoding="ascii") as file:
        file.write("process p pid=7 exe=\"/p\" arg=\"p\"\nthread t p tid=7 \"p\"\n")
        for i in range(count):
            file.write(f"stack s{i} \"text_{i:05}\"\n")
        for i in range(count):
            file.write(f"+1us t malloc s{i} {0x10000 + 64 * i:#x} 16\n")
    run("dump", "-a", "texts.txt", "-o", "texts.tide", "-f")
    for where, expected in (("", count), ("WHERE function = 'text_69999'", 1), ("WHERE function = 'text_7'", 0),
                            ("WHERE function > 'text_69989'", 10)):
        equal([{"n": expected}], sql("texts.tide", f"SELECT count(DISTINCT function) AS n FROM frames {where}"), where)


@test
def sites_add_up_to_their_allocations():
    databases()
    for path in (assemble("kitchen"), assemble("family"), make("random.tide", 300, 500, 20_000), sampled()):
        kept = "end_ns = 18446744073709551615"
        expected = sql(path, f"""
            SELECT coalesce(names_identity, 0) AS site, coalesce(sum(weight) FILTER (kind <> 'before'), 0) AS count,
                   coalesce(sum(weighted_bytes) FILTER (kind <> 'before'), 0) AS bytes,
                   coalesce(sum(weight) FILTER ({kept}), 0) AS kept_count,
                   coalesce(sum(weighted_bytes) FILTER ({kept}), 0) AS kept_bytes,
                   sum(weighted_bytes * (least(gone_ns, duration_ns) - begin_ns)) / 1e9 AS byte_seconds
            FROM allocations a LEFT JOIN stacks s USING (trace, stack) JOIN runs USING (trace)
            GROUP BY 1 ORDER BY 1""")
        found = sql(path, "SELECT site, count, bytes, kept_count, kept_bytes, byte_seconds FROM sites ORDER BY site")
        check(len(expected) > 1 or path == "sampled.tide")
        for one, other in zip(expected, found, strict=True):
            equal(one["site"], other["site"])
            for key, value in one.items():
                check(abs(value - other[key]) <= 1e-9 * abs(value), path, one, other)


main()
