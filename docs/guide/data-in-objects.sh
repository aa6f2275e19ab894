#!/usr/bin/env bash
# Puts clicks into object storage, indexes them there, reduces them by a reduction of Tonnage's and by
# one's own, and adds them up page by page. Needs tonnage and its python in PATH, and what AWS_ variables
# say of a store. Its arguments are an empty folder there, and a directory for the results, which must not
# be there.
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
