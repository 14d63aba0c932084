#!/bin/sh
# The same for a minute each.
# timeout: 1800
# soak: only
exec "$TIDEMARK_SOURCE/test/fuzz/fuzz.sh" 60
