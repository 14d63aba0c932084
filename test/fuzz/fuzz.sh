#!/bin/sh
# Each fuzz target for 10 seconds, under the sanitizers, with the same inputs each time.
# timeout: 900
set -u
exec "$TIDEMARK_SOURCE/tools/fuzz" --build "$TIDEMARK_BUILD-fuzz" --seconds "${1:-10}" --seed 1
