#!/usr/bin/env python3
# timeout: 400
"""Browsers, which bring their own allocators: the same picture, every process, and nothing lost."""
import json
import os
import shutil

from libguest import TIDEMARK, Skip, check, environment, equal, main, run, test

PAGE = """<html><body><ul id=l></ul><script>
let kept = [];
for (let i = 0; i < 30000; i++) kept.push({ number: i, text: "item " + i });
for (let i = 0; i < 100; i++) {
	let item = document.createElement("li");
	item.textContent = kept[i * 7].text;
	l.appendChild(item);
}
</script></body></html>
"""
CHROMIUM = ["--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
            "--window-size=800,600", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
FIREFOX = ["--headless", "--no-remote", "--window-size=800,600"]


def picture(name, command, *record):
    profile = os.path.abspath(f"profile-{name}")
    os.mkdir(profile)
    with open("page.html", "w", encoding="ascii") as file:
        file.write(PAGE)
    env = environment(HOME=profile, MOZ_HEADLESS="1")
    page = "file://" + os.path.abspath("page.html")
    shot = os.path.abspath(f"{name}.png")
    options = [f"--user-data-dir={profile}", f"--screenshot={shot}"] if "chromium" in command[0] \
        else ["--profile", profile, "--screenshot", shot]
    ended = run([*record, *command, *options, page], timeout=150, env=env)
    equal(0, ended.code, f"exit code ({ended.err[-800:]})")
    with open(shot, "rb") as file:
        return file.read(), ended


def recorded(command, allocator, complete):
    if shutil.which(command[0]) is None:
        raise Skip(f"needs {command[0]}")
    plain, _ = picture("plain", command)
    shown, _ = picture("recorded", command, TIDEMARK, "record", "-o", "t.tide", "--")
    check(plain == shown, "another picture")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    equal(0, info["events"]["lost"], "events lost")
    equal(complete, info["trace"]["complete"], f"is it whole? {info['notes']['messages']}")
    own = [process for process in info["processes"]
           if command[0] in os.path.basename(process["exe"])]
    check(len(own) > 4, f"{len(own)} processes")
    for process in own:
        check(process["exit"] in ("exit 0", "exec", "signal SIGTERM", "signal SIGKILL"), process)
        seen = [each for each in process["allocators"] if each["seen"] == "exported"]
        equal([(allocator, process["exe"])], [(each["name"], each["file"]) for each in seen],
              "its allocator")
    report = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)
    check(report["heap"]["allocations"] > 100_000, report["heap"])
    return report["heap"]


@test
def chromium():
    heap = recorded(["chromium", *CHROMIUM], "unknown", os.geteuid() == 0)
    # What its own code asks PartitionAlloc for, past malloc, is not seen, but may be freed by free.
    check(heap["orphan_frees"] + heap["lost_frees"] < heap["frees"] / 1000, heap)


@test
def firefox_with_its_sandbox():
    heap = recorded(["firefox-esr", *FIREFOX], "mozjemalloc", True)
    equal((0, 0), (heap["orphan_frees"], heap["lost_frees"]), "orphans, and lost frees")


main()
