#!/usr/bin/env python3
# soak: only
# timeout: 1800
"""The questions of cli/questions, many of them, of a seed of their own each time."""
import os
import random

from libquestions import ask
from libtests import main, test

SEED = int(os.environ.get("TIDEMARK_SEED", random.randrange(1 << 30)))


@test
def answers_agree_with_each_other():
    print(f"# seed {SEED}", flush=True)
    ask(SEED, 60)


main()
