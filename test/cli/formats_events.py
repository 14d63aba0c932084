#!/usr/bin/env python3
# parallel: yes
"""`tidemark export`: the formats of events hold each block that `tidemark window` counts."""
from libanswer import answer, run
from libtests import equal, main, test


def assembled(name, text):
    with open(f"{name}.txt", "w", encoding="utf-8") as file:
        file.write(text)
    run("dump", "--assemble", f"{name}.txt", "-o", f"{name}.tide", "--force")
    return f"{name}.tide"


def failed_realloc():
    """An allocator asks the kernel for memory inside of a realloc, in vain."""
    return assembled("failed", """
process p pid=7 exe="/odd"
thread t p tid=7
thread u p tid=8
+100us t malloc 0x1000 10
+100us t realloc-free 0x1000
+0us   u malloc 0x3000 30
+100us t mmap 0x7f0000000000 4096 prot=rw flags=private|anonymous error=12
+100us t realloc-undo 0x1000 99
+1ms   end p exit=0
end
""")


@test
def a_realloc_that_failed_changes_nothing_whatever_the_allocator_did_inside_of_it():
    path = failed_realloc()
    equal(40, answer("window", path)["total"]["impacting_size"])


main()
