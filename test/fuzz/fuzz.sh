#!/bin/sh
# Each fuzz target for 4 seconds, under the sanitizers, with the same inputs each time.
# timeout: 900
# parallel: yes
set -u
exec "$TIDEMARK_SOURCE/tools/fuzz" --build "$TIDEMARK_BUILD-fuzz" --seconds "${1:-4}" --seed 1 --jobs 1
