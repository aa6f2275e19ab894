#!/usr/bin/env bash
# Put clicks into object storage, index them there, reduce them with a built-in reduction and with your
# own, and sum them by page. Needs tonnage and its python in PATH, and the AWS_ variables of a store.
# Arguments: an empty folder of the store, and a new directory for the results.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
folder=${1:?specify an empty folder, for example s3://bucket/clicks}
mkdir "${2:?specify a new directory for the results}"
out=$(realpath "$2")

python "$here/clicks.py" "$folder"

tonnage index "$folder/"
tonnage run reduce histogram "$folder/" --columns seconds --json >"$out/seconds.json"
tonnage run reduce "$here/clicks.py:Clicks" "$folder/" --json >"$out/clicks.json"
tonnage run mapreduce "$here/clicks.py:PAGES" "$folder/" --output "$out/pages" --scratch "$out"
