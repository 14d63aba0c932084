import subprocess
import sys

import pytest

BIG = "x = bytearray(8 << 20)"


@pytest.mark.limit_memory("24 MB")
def test_within():
    assert len(bytearray(8 << 20))


@pytest.mark.limit_memory("4 MB")
def test_beyond():
    assert len(bytearray(8 << 20))


@pytest.mark.limit_memory("4 MB")
def test_child_beyond():
    subprocess.run([sys.executable, "-c", BIG], check=True)


def test_without_a_limit():
    assert len(bytearray(64 << 20))
