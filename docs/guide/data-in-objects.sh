#!/usr/bin/env bash
# Put clicks into object storage, index them there, reduce them by a built-in reduction and by your own,
# and add them up by page. Needs tonnage and its python in PATH, and a store in the AWS_ variables.
# Arguments: an empty folder of the store, and a new directory for the results.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
folder=${1:?give an empty folder, like s3://bucket/clicks}
mkdir "${2:?give a new directory for the results}"
out=$(realpath "$2")

python "$here/clicks.py" "$folder"

tonnage index "$folder/"
tonnage run reduce histogram "$folder/" --columns seconds --json >"$out/seconds.json"
tonnage run reduce "$here/clicks.py:Clicks" "$folder/" --json >"$out/clicks.json"
tonnage run mapreduce "$here/clicks.py:PAGES" "$folder/" --output "$out/pages" --scratch "$out"
