#!/bin/sh
# The tree keeps the rules of STYLE.md that a machine can check.
# parallel: yes
# timeout: 400
exec "$TIDEMARK_SOURCE/tools/tidy" --build "$TIDEMARK_BUILD"
