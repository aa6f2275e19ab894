#!/bin/bash
# Stands for ssh, and for machines: each address gets a node of the lab $LAB, the next in
# $MACHINES/free, when it is first reached. There it boots: processes, disk and files of Ray that are
# its own, until process $inner of it ends. $MACHINES/ADDRESS tells node and process.
set -eu
command=${!#}
at=$(($# - 1))
address=${!at#*@}
exec 9> "$MACHINES/lock"
flock 9
if [ ! -e "$MACHINES/$address" ]; then
    node=$(head -n 1 "$MACHINES/free")
    sed -i 1d "$MACHINES/free"
    home=$MACHINES/homes/$node
    mkdir -p "$home/ray" "$home/tmp"
    ip -n "lab.$LAB.$node" address add "$address/16" dev eth0
    setsid "$TONNAGE" lab exec --lab "$LAB" "$node" -- \
        unshare --mount --pid --fork --kill-child --mount-proc bash -c '
            mount --bind "$1" /var/tmp
            mkdir -p /tmp/ray
            mount --bind "$2/ray" /tmp/ray
            touch "$2/booted"
            exec sleep infinity' boot "/var/lib/tonnage-lab/$LAB/$node.disk-0" "$home" \
        < /dev/null > "$home/boot" 2>&1 9>&- &
    until [ -e "$home/booted" ]; do
        kill -0 $! 2> /dev/null || { cat "$home/boot" >&2; exit 255; }
        sleep 0.1
    done
    echo "$node $(cat "/proc/$!/task/$!/children")" > "$MACHINES/$address"
fi
read -r node inner < "$MACHINES/$address"
flock -u 9
exec 9>&-
exec "$TONNAGE" lab exec --lab "$LAB" "$node" -- \
    nsenter --target "$inner" --mount --pid -- \
    env "HOME=$MACHINES/homes/$node" "PATH=$NODE_PATH" "PYTHONPATH=$NODE_PYTHONPATH" \
    "TMPDIR=$MACHINES/homes/$node/tmp" RAY_TMPDIR=/tmp RAY_memory_monitor_refresh_ms=0 \
    PIP_NO_DEPS=1 PIP_NO_INDEX=1 bash -c "$command"
