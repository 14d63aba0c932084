"""What the tests of transients, growth and diff share: traces made from text."""
from libanswer import assemble

MIB = 1 << 20


class Trace:
    """A program of one thread, spelled out event by event. Times are in microseconds."""

    def __init__(self, command="./app", exe="/bin/app"):
        self.lines = [f'trace command="{command}" tick=1000',
                      f'process p0 pid=42 exe="{exe}"', 'thread t0 p0 tid=42 "main"']
        self.threads = 1
        self.events = []
        self.address = 0x10000
        self.stacks = {}

    def process(self, exe, pid, began_us=0, parent=0):
        """Another process of one thread; its number."""
        number = self.threads
        self.lines.append(f'process p{number} pid={pid} parent=p{parent} began={began_us * 1000} '
                          f'exe="{exe}"')
        self.lines.append(f'thread t{number} p{number} tid={pid} "main"')
        self.threads += 1
        return number

    def stack(self, text):
        if text not in self.stacks:
            self.stacks[text] = f"s{len(self.stacks) + 1}"
            self.lines.append(f"stack {self.stacks[text]} {text}")
        return self.stacks[text]

    def alloc(self, time_us, stack, size, address=None, thread=0):
        if address is None:
            self.address += size + 16
            address = self.address
        self.events.append((time_us, f"t{thread} malloc {self.stack(stack)} {address:#x} {size}"))
        return address

    def realloc(self, time_us, stack, old, size, thread=0):
        """One that moves, as one event: the new address."""
        self.address += size + 16
        self.events.append((time_us, f"t{thread} realloc {self.stack(stack)} {old:#x} -> {self.address:#x} {size}"))
        return self.address

    def realloc_apart(self, time_us, stack, old, size, then, thread=0, failed=False):
        """The same in two halves with what `then` does between them; `failed`: the block stays where it is."""
        self.events.append((time_us, f"t{thread} realloc-free {old:#x}"))
        then()
        if failed:
            self.events.append((time_us, f"t{thread} realloc-undo {self.stack(stack)} {old:#x} {size}"))
            return old
        self.address += size + 16
        self.events.append((time_us, f"t{thread} realloc-alloc {self.stack(stack)} {self.address:#x} {size}"))
        return self.address

    def free(self, time_us, address, thread=0):
        self.events.append((time_us, f"t{thread} free {address:#x}"))

    def note(self, time_us, text):
        self.events.append((time_us, text))

    def write(self, path, end_us=None):
        self.events.sort(key=lambda event: event[0])
        last = end_us if end_us is not None else (self.events[-1][0] if self.events else 0)
        lines = [*self.lines, *(f"@{round(time_us * 1000)} {text}" for time_us, text in self.events),
                 f"@{round(last * 1000)} end p0 exit=0", "end", ""]
        return assemble(path.removesuffix(".tide"), "\n".join(lines))


def functions(row):
    return [line["function"] for line in row["stack"]]
