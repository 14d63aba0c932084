"""What tests of Windows programs share: where Wine and the cross-built programs are."""
import os
import shutil
import subprocess
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]
TOOLS = os.path.join(SOURCE, "tools")
WINE_RUN = os.path.join(TOOLS, "wine-run")
BITS = {64: "x86_64-w64-mingw32", 32: "i686-w64-mingw32"}


def skip(reason):
    print(reason)
    sys.exit(77)


def need_wine():
    """Skip, saying why, where Windows programs cannot be run or built."""
    for target in BITS.values():
        if not shutil.which(f"{target}-gcc"):
            skip(f"there is no {target}-gcc here (make deps-win)")
    done = subprocess.run([os.path.join(TOOLS, "wine-set-up"), "--where"], capture_output=True,
                          text=True)
    if done.returncode != 0:
        skip(done.stderr.strip().removeprefix("wine-set-up: "))


def built(name):
    """What `make win` built: tidemark.exe and the recorder's DLLs lie in one folder."""
    path = os.path.join(os.environ["TIDEMARK_BUILD"] + "-win", "bin", name)
    if not os.path.exists(path):
        skip(f"{name} is not built (make win)")
    return path


def cross_compile(bits, output, *arguments):
    """A Windows program of a few C files."""
    subprocess.run([f"{BITS[bits]}-gcc", "-O1", "-g", "-o", output, *arguments], check=True)


def wine(*command, prefix=None, seconds=60, **keywords):
    """Run a Windows program to its end."""
    place = ["--prefix", prefix] if prefix else []
    keywords.setdefault("capture_output", True)
    return subprocess.run([WINE_RUN, *place, "--time", str(seconds), "--", *command],
                          **keywords)
