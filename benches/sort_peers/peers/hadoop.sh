#!/bin/sh
# Hadoop's TeraSort in one JVM (the local runner): INPUT OUTPUT_DIR SCRATCH_DIR MEMORY_MB.
#
# Half of the memory is the JVM's heap, a sixth of that a map's sort buffer; as many maps and
# reduces at once as there are CPUs, over splits and partitions of about 128 MiB.
set -eu
jars=$(dirname "$0")/../.tools/hadoop
if [ "$1" = --version ]; then
    ls "$jars" | sed -n 's/^hadoop-mapreduce-examples-\(.*\)\.jar$/\1/p' | grep .
    exit
fi
input=$1 output=$2 scratch=$3 heap_mb=$(($4 / 2))
split=$((128 << 20))
reduces=$((($(stat -c %s "$input") + split - 1) / split))
rmdir "$output" # TeraSort creates it, and refuses an existing one
exec java -Xmx"$heap_mb"m -cp "$jars/*" org.apache.hadoop.examples.terasort.TeraSort \
    -Dfs.defaultFS=file:/// \
    -Dhadoop.tmp.dir="$scratch" \
    -Dmapreduce.framework.name=local \
    -Dmapreduce.local.map.tasks.maximum="$(nproc)" \
    -Dmapreduce.local.reduce.tasks.maximum="$(nproc)" \
    -Dmapreduce.job.reduces="$reduces" \
    -Dmapreduce.input.fileinputformat.split.minsize="$split" \
    -Dmapreduce.task.io.sort.mb="$((heap_mb / 6))" \
    -Dmapreduce.task.io.sort.factor=100 \
    "$input" "$output"
