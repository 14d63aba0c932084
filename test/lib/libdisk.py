"""libdisk: file systems that are soon full, or hang."""
import ctypes
import errno
import os
import signal
import struct

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


class HangingDisk:
    """A file system under `name` of which no write of a file's bytes after the first `size` is ever answered. What
    is written up to there can be read. With its end whoever waits for it goes on."""

    def __init__(self, name, size):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.name, self.size, self.files = name, size, {}
        os.mkdir(name)
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            raise Skip("needs root and /dev/fuse, to make a file system")

    def __enter__(self):
        fd = os.open("/dev/fuse", os.O_RDWR)
        how = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
        if self.libc.mount(b"hanging", self.name.encode(), b"fuse.hanging", 0, how.encode()) != 0:
            raise Skip("this system mounts no file system of a program's")
        self.server = os.fork()
        if self.server == 0:
            try:
                while True:
                    self.serve(fd)
            finally:
                os._exit(0)
        os.close(fd)
        return self

    def attributes(self, node):
        size, mode = (0, 0o40755) if node == 1 else (len(self.files[node]), 0o100644)
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def serve(self, fd):
        """One request, as <linux/fuse.h> has them."""
        request = os.read(fd, 1 << 20)
        _, kind, number, node = struct.unpack_from("<IIQQ", request)
        body, error, answer = request[40:], 0, b""
        if kind == 26:  # INIT
            answer = struct.pack("<4I2H2I2H28x", 7, 31, 65536, 0, 0, 0, 1 << 16, 1, 0, 0)
        elif kind == 35:  # CREATE
            node = len(self.files) + 2
            self.files[node] = bytearray()
            answer = self.entry(node) + struct.pack("<Q2I", 0, 0, 0)
        elif kind in (3, 4):  # GETATTR, SETATTR
            valid, size = struct.unpack_from("<I12xQ", body) if kind == 4 else (0, 0)
            if valid & 8:
                self.files[node] = self.files[node][:size].ljust(size, b"\0")
            answer = struct.pack("<Q2I", 1, 0, 0) + self.attributes(node)
        elif kind == 16:  # WRITE
            at, size = struct.unpack_from("<8xQI", body)
            if at + size > self.size:
                return
            self.files[node][at:at + size] = body[40:40 + size]
            answer = struct.pack("<2I", size, 0)
        elif kind == 14:  # OPEN
            answer = struct.pack("<Q2I", 0, 0, 0)
        elif kind == 15:  # READ
            at, size = struct.unpack_from("<8xQI", body)
            answer = bytes(self.files[node][at:at + size])
        elif kind == 1:  # LOOKUP: of the only file
            answer = self.entry(2) if self.files else b""
            error = 0 if self.files else -errno.ENOENT
        elif kind in (2, 36, 42):  # FORGET, INTERRUPT: not answered
            return
        elif kind not in (18, 20, 25, 29):  # RELEASE, FSYNC, FLUSH
            error = -errno.ENOSYS
        os.write(fd, struct.pack("<IiQ", 16 + len(answer), error, number) + answer)

    def __exit__(self, *why):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        self.libc.umount2(self.name.encode(), 2)
