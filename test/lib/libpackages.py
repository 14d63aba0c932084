"""libpackages: npm packages that tests use (tools/packages-set-up). A script may set caches of its own: these stay where they are."""
import os
import subprocess

from libtests import Skip

ENVIRONMENT = dict(os.environ)


def packages(*words):
    """The folder of a set; with "--where" only if it is there."""
    done = subprocess.run([os.path.join(ENVIRONMENT["TIDEMARK_SOURCE"], "tools/packages-set-up"), *words],
                          capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode:
        raise Skip(done.stderr.strip().splitlines()[-1].removeprefix("packages-set-up: "))
    return done.stdout.strip().splitlines()[-1]
