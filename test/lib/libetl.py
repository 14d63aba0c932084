"""Makes Windows event logs (.etl), as a session of ETW would write them: docs/formats.md."""
import struct
import uuid

MEMORY, PROCESS, THREAD, HEAP, IMAGE, STACK = 0x02, 0x03, 0x05, 0x10, 0x14, 0x18
IMAGE_ID = uuid.UUID("b3e675d7-2554-4f18-830b-2762732560de").bytes_le
FREQUENCY = 10_000_000
FIRST = 1_000_000
STARTED = 132_000_000_000_000_000  # in 100 ns since 1601


def packed(data):
    """Plain LZ77 of [MS-XCA]: the latest match of three bytes or more."""
    out, seen, at = bytearray(), {}, 0
    flags_at, flags, used, nibble = 0, 0, 32, None

    def flag(bit):
        nonlocal flags_at, flags, used
        if used == 32:
            flags_at, flags, used = len(out), 0, 0
            out.extend(b"\0\0\0\0")
        flags |= bit << (31 - used)
        used += 1
        struct.pack_into("<I", out, flags_at, flags)

    def long_length(rest):  # what a length has above 7 + 3
        nonlocal nibble
        short = min(rest, 15)
        if nibble is None:
            nibble = len(out)
            out.append(short)
        else:
            out[nibble] |= short << 4
            nibble = None
        if short < 15:
            return
        rest -= 15
        if rest < 255:
            out.append(rest)
            return
        out.append(255)
        rest += 15 + 7
        out.extend(struct.pack("<H", rest) if rest < 65536 else struct.pack("<HI", 0, rest))

    while at < len(data):
        before = seen.get(data[at:at + 3], -1)
        seen[data[at:at + 3]] = at
        length = 0
        if before >= 0 and at - before <= 8192:
            while at + length < len(data) and data[before + length] == data[at + length]:
                length += 1
        if length < 3:
            flag(0)
            out.append(data[at])
            at += 1
            continue
        flag(1)
        out.extend(struct.pack("<H", (at - before - 1) << 3 | min(length - 3, 7)))
        if length >= 10:
            long_length(length - 10)
        at += length
    return bytes(out)


class Log:
    """Events are added in any order; `write` sorts those of each processor."""

    def __init__(self, pointer=8, lost=0):
        self.pointer, self.lost, self.events = pointer, lost, []

    def p(self, *values):
        return struct.pack("<" + ("Q" if self.pointer == 8 else "I") * len(values), *values)

    def add(self, time, cpu, event):
        self.events.append((time, cpu, event + bytes(-len(event) % 8)))

    def system(self, time, group, opcode, payload, version=2, pid=4, tid=8, cpu=0):
        self.add(time, cpu, struct.pack("<HBBHBBIIQII", version, 2 if self.pointer == 8 else 1, 0xc0,
                                        32 + len(payload), opcode, group, tid, pid, time, 0, 0) + payload)

    def short(self, time, group, opcode, payload, version=2, cpu=0):
        """One whose header has neither process nor thread."""
        self.add(time, cpu, struct.pack("<HBBHBBQ", version, 17 if self.pointer == 8 else 16, 0xc0,
                                        16 + len(payload), opcode, group, time) + payload)

    def full(self, time, guid, opcode, payload, version=2, pid=4, tid=8, cpu=0):
        self.add(time, cpu, struct.pack("<HBBBBHIIQ16sQ", 48 + len(payload),
                                        20 if self.pointer == 8 else 10, 0xc0, opcode, 0, version,
                                        tid, pid, time, guid, 0) + payload)

    def process(self, time, opcode, pid, name, command="", parent=4, status=0):
        self.system(time, PROCESS, opcode, self.p(0xffff8000) + struct.pack("<IIIi", pid, parent, 1, status)
                    + self.p(0) + struct.pack("<II", 0, 0) + name.encode() + b"\0"
                    + (command + "\0").encode("utf-16-le"), version=4)

    def image(self, time, opcode, pid, base, size, path, linked=0x5f000000):
        self.system(time, PROCESS if opcode == 10 else IMAGE, opcode, self.p(base, size)
                    + struct.pack("<III", pid, 0, linked) + bytes(4) + self.p(base) + bytes(16)
                    + (path + "\0").encode("utf-16-le"), version=3)

    def rsds(self, time, pid, base, guid, age, pdb):
        self.full(time, IMAGE_ID, 36, self.p(base) + struct.pack("<I", pid) + guid
                  + struct.pack("<I", age) + pdb.encode() + b"\0")

    def virtual(self, time, opcode, address, size, pid, flags, tid=8, cpu=0, short=False):
        payload = self.p(address, size) + struct.pack("<II", pid, flags)
        if short:
            self.short(time, MEMORY, opcode, payload, cpu=cpu)
        else:
            self.system(time, MEMORY, opcode, payload, pid=pid, tid=tid, cpu=cpu)

    def switch(self, time, tid, cpu=0):
        self.short(time, THREAD, 36, struct.pack("<II", tid, 0) + bytes(16), cpu=cpu)

    def heap(self, time, opcode, pid, tid, *values, cpu=0, flags=b""):
        self.system(time, HEAP, opcode, self.p(*values) + (flags or bytes(4)), pid=pid, tid=tid, cpu=cpu)

    def walk(self, time, of, pid, tid, *frames, cpu=0):
        self.system(time, STACK, 32, struct.pack("<QII", of, pid, tid) + self.p(*frames), cpu=cpu)

    def key(self, time, of, pid, tid, key, kernel=False, cpu=0):
        self.system(time, STACK, 37 if kernel else 38, struct.pack("<QII", of, pid, tid) + self.p(key),
                    cpu=cpu)

    def define(self, time, key, *frames, at_end=False, cpu=0):
        self.system(time, STACK, 36 if at_end else 35, self.p(key, *frames), cpu=cpu)

    def header(self, size, buffers):
        # A time zone, as there is one before the last fields.
        body = struct.pack("<IIIIqIIIIIIII", size, 0x0501000a, 19045, 2, 0, 156250, 0, 0x04010001,
                           buffers, 1, self.pointer, self.lost, 3000)
        body += self.p(0, 0) + bytes(176) + struct.pack("<qqqII", 0, FREQUENCY, STARTED, 1, 0)
        body += bytes(4)
        return struct.pack("<HBBHBBIIQII", 2, 2 if self.pointer == 8 else 1, 0xc0, 32 + len(body), 0, 0,
                           8, 4, FIRST, 0, 0) + body

    def write(self, path, room=4096, compress=False, packing=3):
        rooms, buffers = {}, []
        for time, cpu, event in sorted(self.events, key=lambda each: each[0]):
            part = rooms.setdefault(cpu, [b""])
            if len(part[-1]) + len(event) > room - 72:
                buffers.append((cpu, part[-1]))
                part.append(b"")
            part[-1] += event
        buffers += [(cpu, part[-1]) for cpu, part in rooms.items()]
        with open(path, "wb") as file:
            for cpu, data in [(0, self.header(room, len(buffers) + 1))] + buffers:
                first = file.tell() == 0
                body = packed(data) if compress and not first else data + b"\xff" * (room - 72 - len(data))
                file.write(struct.pack("<IIIiqqQHHIIHHqq", 72 + len(body), 72 + len(data), 0, 0, 0, 0, 0,
                                       cpu, 0, packing, 72 + len(data),
                                       0x61 if compress and not first else 0x21, 4 if first else 0, 0, 0)
                           + body)
        return path
