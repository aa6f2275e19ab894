#!/usr/bin/env bash
# Create a lab, measure its nodes through Ray, sort on them, write reports, remove the lab.
# Needs root, and tonnage in PATH. Argument: a new directory for the results.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir "${1:?specify a new directory for the results}"
out=$(realpath "$1")
disk=/var/lib/tonnage-lab/guide/{node}.disk-0

on_first() { tonnage lab exec --lab guide fast-0 -- tonnage "$@"; }
measure() { on_first measure "$1" --cluster auto --output "$out/$1" "${@:2}"; }

tonnage lab up "$here/cluster-in-a-lab.toml"
trap 'tonnage lab down --lab guide' EXIT # Also when a step fails, or on Ctrl-C.
tonnage lab ray --lab guide

measure disk --dir "$disk" --mode ro wo rw --size 360MB --seconds 6 --repetitions 1
measure ops --dir "$disk" --operation read4k --queue-depth 16 --file-size 64MB --seconds 4 --repetitions 1
measure stream --dir "$disk" --block 240MiB --repetitions 1
measure net --sizes 4 --connections 1 --seconds 3 --repetitions 1 --json

tonnage report "$out" --output "$out/report.html"

input=${disk/\{node\}/fast-0}/in
mkdir "$input"
on_first gensort 2000000 "$input/records"
on_first run sort "$input" --output "$disk/out" --scratch "$disk/scratch" --cluster auto \
    --capacities "$out/disk" "$out/net" --job-dir "$out/sort"
tonnage report "$out/sort" --output "$out/sort.html"
