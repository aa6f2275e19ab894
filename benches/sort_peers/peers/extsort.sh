#!/bin/sh
# The extsort crate, by the program in extsort/: INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB.
set -eu
here=$(dirname "$0")/..
if [ "$1" = --version ]; then
    test -x "$here/.tools/extsort/release/extsort-peer"
    exec sed -n '/^name = "extsort"$/{n;s/^version = "\(.*\)"$/\1/p}' "$here/extsort/Cargo.lock"
fi
exec "$here/.tools/extsort/release/extsort-peer" "$@"
