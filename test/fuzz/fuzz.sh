#!/bin/sh
# Each fuzz target for a minute, under the sanitizers, with the same inputs each time.
# timeout: 900
set -u
exec "$TIDEMARK_SOURCE/tools/fuzz" --build "$TIDEMARK_BUILD-fuzz" --seconds 60 --seed 1
