#!/bin/sh
# Tonnage: its buffers get two thirds of the memory (1 GiB of 1.5):
# INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB. $TONNAGE is the command to run.
set -eu
if [ "$1" = --version ]; then
    exec "$TONNAGE" --version
fi
exec "$TONNAGE" run sort "$1" --output "$2" --scratch "$3" --memory "$(($4 * 2 / 3))MiB" --json
