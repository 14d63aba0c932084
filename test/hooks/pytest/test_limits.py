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
def test_small_objects_beyond():
    chain = ()
    for _ in range(100_000):
        chain = (chain,)


@pytest.mark.limit_memory("4 MB")
def test_child_beyond():
    subprocess.run([sys.executable, "-c", BIG], check=True)


kept = []
cache = {}


@pytest.fixture
def large():
    kept.append(bytearray(8 << 20))
    return kept[-1]


@pytest.mark.limit_leaks("1 MB")
def test_keeps(large):
    kept.append(bytearray(2 << 20))
    assert large


@pytest.mark.limit_leaks("1 MB")
def test_keeps_what_is_cached_and_a_little(large):
    cache.setdefault("large", bytearray(8 << 20))
    kept.append(bytearray(100 << 10))
    assert large and len(bytearray(16 << 20))


def test_without_a_limit():
    assert len(bytearray(64 << 20))


@pytest.mark.limit_memory("4 MB")
@pytest.mark.parametrize("size", (1, 8 << 20), ids=("within " + "x" * 220, "beyond " + "x" * 220))
def test_name_longer_than_a_mark(size):
    assert len(bytearray(size))


@pytest.mark.limit_memory("4 MB")
@pytest.mark.parametrize("size", (1, 8 << 20))
@pytest.mark.parametrize("rest", ("x" * 220,))
def test_told_apart_behind_what_is_cut(rest, size):
    assert rest and len(bytearray(size))
