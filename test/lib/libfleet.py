"""libfleet: runs of two versions on five hosts, of which one holds too much, in a database."""
from libanswer import assemble, run

HOSTS = ("web1", "web2", "web3", "web4", "web5")
ODD = "odd\tname'\\ of \"it\""


def levels(version, host):
    """What the sites of a run hold all the time."""
    number = int(host[-1])
    return {"cache": 900_000 if host == "web4" else 100_000 + number,
            "leak": 10_000 + 100 * number + (30_000 if version == "1.1" else 0),
            **({ODD: 5_000} if version == "1.1" and number < 3 else {})}


def fleet_of(server):
    """A run of each version on each host; those of 1.1 began a day later. The last one has no labels.
    `server` has the place that they are sent to."""
    runs = [(version, host) for version in ("1.0", "1.1") for host in HOSTS] + [(None, None)]
    files = []
    for number, (version, host) in enumerate(runs, 1):
        day = 1_700_000_000 + (86_400 if version == "1.1" else 0)
        lines = [f"trace id={number:032x} began={(day + number) * 10**9} tick=0 command=\"./server\""]
        if version:
            lines.append(f"trace labels=\"version={version}\\nhost={host}\\n\"")
        lines += ["process p pid=1 exe=\"/bin/server\"", "thread t p tid=1"]
        sites = levels(version, host) if version else {"cache": 1}
        for site, (name, size) in enumerate(sites.items(), 1):
            quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
            lines += [f"frame f{site} {site}", f"name f{site} \"{quoted}\"", f"stack s{site} f{site}"]
        lines += [f"@0 t malloc s{site} {site * 0x1000000} {size}" for site, size in enumerate(sites.values(), 1)]
        files.append(assemble(f"run{number}", "\n".join(lines + ["end duration=2000000000"]) + "\n"))
    run("push", *files, "--to", server.place)
