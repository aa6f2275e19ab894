#!/bin/sh
# The floor (floor.cpp); its version is its compiler's: INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB.
set -eu
floor=$(dirname "$0")/../.tools/floor
if [ "$1" = --version ]; then
    test -x "$floor"
    exec g++ -dumpfullversion
fi
exec "$floor" "$@"
