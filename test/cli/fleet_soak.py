#!/usr/bin/env python3
# soak: only
# timeout: 900
"""What `tidemark push`, `fleet` and a trace in a database ask of Debian's ClickHouse has the same answers in the newest one
(chDB), over the same tables."""
import http.server
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request

from libanswer import SOURCE, assemble, run
from libclickhouse import Server
from libpackages import packages
from libtests import check, equal, main, test

os.environ["XDG_CACHE_HOME"] = os.path.abspath("caches")

CHDB = """
const { createRequire } = require('module'), fs = require('fs');
const { Session } = createRequire(process.argv[2] + '/x.js')('chdb');
const session = new Session('./newest');
const work = JSON.parse(fs.readFileSync('work.json', 'utf8'));
session.query('CREATE DATABASE memory');
for (const table of work.tables) {
    session.query(table.create);
    session.query(`INSERT INTO memory.${table.name} SELECT * FROM file('${process.cwd()}/${table.name}.native', 'Native')`);
}
for (const view of work.views)
    session.query(view);
session.query("INSERT INTO memory.marks_rows (trace, name, until, part) SELECT 'old', 'x', today() - toUInt16(number), 1 FROM numbers(6)");
session.query('OPTIMIZE TABLE memory.marks_rows FINAL');
fs.writeFileSync('left.txt', session.query("SELECT count() FROM memory.marks_rows WHERE trace = 'old'", 'TabSeparated'));
fs.writeFileSync('answers.json', JSON.stringify(work.questions.map((question) => {
    try { return session.query(question, 'TabSeparated'); } catch (error) { return String(error); }
})));
"""


TTL = b" TTL until + INTERVAL 2 DAY"


class Passing(http.server.BaseHTTPRequestHandler):
    """Hands on what is asked, and keeps it. Says that it is the newest, and makes tables without what the old one lacks."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        asked = urllib.request.Request(self.server.to + self.path, data=body)
        if body.startswith(b"CREATE TABLE"):
            self.server.made.append(body.decode())
            asked.data = body.replace(TTL, b"")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked) as answered:
            answer = answered.read()
        if body == b"SELECT version()":
            answer = b"26.7.1.1\n"
        if body.startswith(b"SELECT"):
            self.server.kept.append(body.decode())
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def bytes_of(server, sql):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{server.http}/", data=sql.encode()) as answer:
        return answer.read()


def cells(text):
    """Numbers with a point are sums of doubles, whose order is nobody's."""
    return [float(f"{float(cell):.9g}") if re.fullmatch(r"-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?", cell) else cell
            for line in text.splitlines() for cell in line.split("\t")]


def run_of(number, version, host, size):
    return assemble(f"run{number}", f"""trace id={number:032x} began={number * 10**18} tick=0 command="./it's"
trace labels="version={version}\\nhost={host}\\n"
process p pid=1
thread t p tid=1
frame f1 1
name f1 "cache"
stack s1 f1
frame f2 2
name f2 "it's \\\\ \\t odd"
stack s2 f2 < s1
@0 t malloc s1 0x1000 {size}
@500000000 t malloc s2 0x100000 {size + number}
@700000000 t free 0x1000
end duration=1700000000
""")


@test
def the_newest_clickhouse_has_the_same_answers():
    home = packages("chdb")
    with Server() as server, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passing) as passing:
        passing.to, passing.kept, passing.made = f"http://127.0.0.1:{server.http}", [], []
        threading.Thread(target=passing.serve_forever, daemon=True).start()
        place = f"clickhouse://127.0.0.1:{passing.server_port}/memory"
        files = [run_of(number, "1.0" if number < 5 else "1.1", f"web{number % 5}", 90_000 if number % 5 == 4 else 1_000 + number)
                 for number in range(1, 10)]
        run("push", *files, "--to", place)
        run("push", *files, "--to", place)
        for words in (("sites",), ("sites", "--label", "version=1.0", "--since", "9h"), ("grew",), ("grew", "--ago", "1h"), ("hosts",),
                      ("trend",), ("trend", "--site", "it's \\ \t odd"), ("traces",)):
            run("fleet", words[0], place, *words[1:])
        run("report", f"{place}?trace={1:032x}")
        passing.shutdown()
        with open(os.path.join(SOURCE, "docs/howto/fleet.md"), encoding="utf-8") as file:
            for question in re.findall(r"```sql\n(.*?)```", file.read(), re.S):
                question = question.replace("FROM_NS", "0").replace("TO_NS", "600000000")
                passing.kept.append(question)
        # Asked once more, now that all is there.
        kept = [(question, bytes_of(server, question)) for question in passing.kept
                if not re.search(r"version\(\)|system\.tables|FORMAT RowBinary", question)]
        check(len(kept) > 30, len(kept))
        work = {"tables": [], "views": [], "questions": []}
        for name, engine in server.ask("SELECT name, engine FROM system.tables WHERE database = 'memory'"):
            if engine == "View":
                work["views"].append(bytes_of(server, f"SHOW CREATE TABLE memory.{name} FORMAT TabSeparatedRaw").decode())
                continue
            create, = [made for made in set(passing.made) if f" memory.{name} " in made]
            check(TTL.decode() in create, create)
            work["tables"].append({"name": name, "create": create})
            with open(name + ".native", "wb") as file:
                file.write(bytes_of(server, f"SELECT * FROM memory.{name} FORMAT Native"))
    work["questions"] = [question for question, _ in kept]
    with open("work.json", "w", encoding="utf-8") as file:
        json.dump(work, file)
    with open("newest.cjs", "w", encoding="utf-8") as file:
        file.write(CHDB)
    subprocess.run(["node", "newest.cjs", home], check=True)
    # Rows whose day is two days ago or more are taken away.
    with open("left.txt", encoding="utf-8") as file:
        check(file.read().strip() in ("2", "3"))
    with open("answers.json", encoding="utf-8") as file:
        for (question, old), new in zip(kept, json.load(file), strict=True):
            sort = (lambda found: found) if "ORDER BY" in question else (lambda found: sorted(found, key=str))
            equal(sort(cells(old.decode())), sort(cells(new)), question)


main()
