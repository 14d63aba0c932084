"""libdisk: small file systems, which are soon full."""
import ctypes
import os

from libtests import Skip


class Disk:
    """A small file system under `name`, until the end of `with`."""

    def __init__(self, name, size):
        self.name = name
        os.mkdir(name)
        self.libc = ctypes.CDLL(None, use_errno=True)
        if os.geteuid() != 0 or self.mount(size, 0) != 0:
            raise Skip("needs root, to make a small file system")

    def mount(self, size, flags):
        return self.libc.mount(b"tmpfs", self.name.encode(), b"tmpfs", flags,
                               f"size={size}".encode())

    def __enter__(self):
        return self

    def grow(self, size):
        remount = 32
        assert self.mount(size, remount) == 0

    def fill(self):
        """Files, until no more can be made."""
        try:
            for number in range(1 << 20):
                os.close(os.open(f"{self.name}/{number}.full", os.O_CREAT))
        except OSError:
            pass

    def clear(self):
        for name in os.listdir(self.name):
            if name.endswith(".full"):
                os.remove(f"{self.name}/{name}")

    def __exit__(self, *why):
        self.libc.umount2(self.name.encode(), 2)
