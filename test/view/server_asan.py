#!/usr/bin/env python3
# parallel: yes
# timeout: 400
"""The hostile requests of server.py once more, to a server that is built with the address and
undefined-behaviour sanitizers: a byte read where none is, or memory that is never given back, fails
the test (its end is not 0). `make test` builds it."""
import os
import subprocess
import sys

SERVER = os.environ["TIDEMARK_BUILD"] + "-asan/tidemark"


def main():
    if not os.path.exists(SERVER):
        print("needs the server under the sanitizers (make asan-view)")
        return 77
    env = {**os.environ, "TIDEMARK_SERVER": SERVER,
           "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
           "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    script = os.path.join(os.environ["TIDEMARK_SOURCE"], "test/view/server.py")
    return subprocess.run([sys.executable, script], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
