#!/usr/bin/env python3
# soak: only
# timeout: 1800
"""The tests of push, of fleet and of traces in a database once more, with the newest ClickHouse (chDB) as the server: what is sent
is taken there, sent again and asked there. Left out is what is about Debian's server: its users, its lack of a TTL."""
import os
import sys

import libclickhouse
from libtests import main, take

libclickhouse.NEWEST = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
take("push_soak")
take("push", "the rows are", "a window has", "another part", "a copy that", "what the howto")
take("fleet", "every command", "names come", "what is not there", "a piece that", "what many traces", "what a fleet", "the viewer answers")
main()
