#!/bin/sh
# GNU sort, on ASCII records: it sorts lines, so its INPUT comes from gensort --ascii, whose records
# are lines. Bytes are compared as they are (LC_ALL=C). Half of the memory is sort's
# buffer, its page cache has the rest: INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB.
set -eu
if [ "$1" = --version ]; then
    exec sort --version
fi
export LC_ALL=C
exec sort --parallel="$(nproc)" -S "$(($4 / 2))M" -T "$3" -o "$2/sorted" "$1"
