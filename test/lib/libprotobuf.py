"""libprotobuf: Protocol Buffers messages taken apart without their .proto: fields by number; and OpenTelemetry's profiles."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7


def fields(data):
    """Yields (number, value): int for varints and fixed ones, bytes for the rest."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            assert kind == 2, f"wire type {kind}"
            length, at = varint(data, at)
            assert at + length <= len(data), "a field that is longer than its message"
            value, at = data[at:at + length], at + length
        yield tag >> 3, value


def message(data):
    """Lists of values by field number."""
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def packed(data):
    """The varints of a packed list, as int64."""
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


class Otlp:
    """A ProfilesData message, or an ExportProfilesServiceRequest, which looks the same."""

    def __init__(self, data):
        top = message(data)
        self.dictionary = message(top[2][0])
        self.strings = [text.decode() for text in self.dictionary[5]]
        self.resources = [message(each) for each in top.get(1, [])]

    def profiles(self):
        for resource in self.resources:
            for scope in map(message, resource[2]):
                yield from map(message, scope[2])

    def sums(self):
        found = {}
        for profile in self.profiles():
            name = self.strings[message(profile[1][0])[1][0]]
            found.setdefault(name, 0)
            found[name] += sum(packed(message(sample)[4][0])[0] for sample in profile.get(2, []))
        return [found.get(name, 0) for name in ("alloc_objects", "alloc_space", "inuse_objects",
                                                "inuse_space")]
