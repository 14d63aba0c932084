"""libi386: Debian's own programs of 32 bits, which tools/i386-set-up has unpacked outside the tree."""
import functools
import os
import subprocess

SOURCE = os.environ.get("TIDEMARK_SOURCE", ".")


@functools.lru_cache(None)
def why_none_runs():
    """Why this machine runs no programs of 32 bits; None where it does."""
    done = subprocess.run([os.path.join(SOURCE, "tools", "runs-32-bit")], capture_output=True,
                          text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def find():
    """Where they are, and why they are not; one of both is None."""
    if why_none_runs():
        return None, why_none_runs()
    done = subprocess.run([os.path.join(SOURCE, "tools", "i386-set-up"), "--where"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip().removeprefix("i386-set-up: ")
    return done.stdout.strip(), None


def program(home, name):
    return os.path.join(home, "root", "usr", "bin", name)


def libraries(home):
    return ":".join(os.path.join(home, "root", folder, "i386-linux-gnu")
                    for folder in ("lib", "usr/lib"))


def variables(home):
    """What must be in the environment, so that they find what belongs to them."""
    return {"LD_LIBRARY_PATH": libraries(home), "PYTHONHOME": os.path.join(home, "root", "usr"),
            "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
