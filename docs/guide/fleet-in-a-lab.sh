#!/usr/bin/env bash
# Makes a lab, measures its machines by Ray, writes a report, takes the lab down again. Needs root,
# and tonnage in PATH. Its argument is a directory for the results, which must not be there.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir "${1:?give a new directory for the results}"
out=$(realpath "$1")
disk=/var/lib/tonnage-lab/guide/{node}.disk-0

measure() {
    tonnage lab exec --lab guide fast-0 -- tonnage measure "$1" --fleet auto --out "$out/$1" "${@:2}"
}

tonnage lab up "$here/fleet-in-a-lab.toml"
trap 'tonnage lab down --lab guide' EXIT # Also when a step fails, or on Ctrl-C.
tonnage lab ray --lab guide

measure disk --dir "$disk" --mode ro wo rw --size 360MB --seconds 6 --rounds 1
measure ops --dir "$disk" --operation read4k --outstanding 16 --file-size 64MB --seconds 4 --rounds 1
measure stream --dir "$disk" --block 240MiB --repetitions 1
measure net --sizes 4 --connections 1 --seconds 3 --rounds 1 --json

tonnage report "$out" --out "$out/report.html"
