"""What scripts of tests share: functions, run one after the other, each told in a line (TAP)."""


class Skip(Exception):
    """Raised by a test that cannot be made here; its text is the reason."""


def run_all(tests, after=None):
    """Run all, whatever happens in one; `after` is called behind each. Returns the exit code: 1 if
    any failed."""
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, function in enumerate(tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception as problem:  # whatever it is, the others still run
            failed += 1
            print(f"not ok {number} - {name}\n# {type(problem).__name__}: {problem}"[:3000],
                  flush=True)
        if after:
            after()
    return 1 if failed else 0
