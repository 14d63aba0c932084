"""librows: what tests of tables share: DuckDB's library and other readers of Parquet, questions of the
howto, and a query as rows."""
import json
import os
import re

from libanswer import SOURCE, run
from libpackages import packages


def databases():
    """Where npm's packages are; and DuckDB is in the environment. Raises Skip if they are not there."""
    home = packages("databases", "--where")
    os.environ["TIDEMARK_DUCKDB"] = os.path.join(home, "@duckdb/node-bindings-linux-x64/libduckdb.so")
    return home


def sql(*words):
    """The rows of an answer."""
    return json.loads(run("sql", *words, "--json").stdout)


def questions():
    """The questions of the howto by number."""
    with open(os.path.join(SOURCE, "docs/howto/ask-in-sql.md"), encoding="utf-8") as file:
        found = re.findall(r"^## (\d+)\..*?```sql\n(.*?)```", file.read(), re.M | re.S)
    return {int(number): text for number, text in found}


def columns():
    """The columns of each table, as docs/schema/rows.md has them: name and type. A part of it without such is
    about something else."""
    with open(os.path.join(SOURCE, "docs/schema/rows.md"), encoding="utf-8") as file:
        parts = re.split(r"^## ", file.read(), flags=re.M)[1:]
    found = {part.split("\n")[0]: re.findall(r"^\| `(\w+)` \| (text|u32|u64|double|list of u32) \|", part, re.M)
             for part in parts}
    return {table: rows for table, rows in found.items() if rows}
