# Starts Ray on a node, in place of what runs there: the head where $head is empty, else a worker.
set -eu
. ~/tonnage/environment
ray stop --force > /dev/null
if [ -z "$head" ]; then
    set -- --head --port="$port" --include-dashboard=false
else
    set -- --address="$head:$port"
fi
ray start "$@" --node-ip-address="$address" --node-name="$name" --labels="$labels" \
    --disable-usage-stats
