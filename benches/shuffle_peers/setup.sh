#!/bin/sh
# Install the peers: Python packages into ../.venv, TeraSort into .tools. Safe to repeat.
set -eu
cd "$(dirname "$0")"

for tool in python3 javac jar; do
    command -v "$tool" >/dev/null || {
        echo "setup.sh: $tool is missing (Debian: python3-venv, default-jdk-headless)" >&2
        exit 1
    }
done

test -x ../.venv/bin/python || python3 -m venv ../.venv
../.venv/bin/python -m pip install --quiet --require-hashes -r requirements.txt
jars=$(../.venv/bin/python -c 'import pyspark; print(pyspark.__path__[0])')/jars
rm -rf .tools
mkdir -p .tools/classes
javac -Xlint:all,-path,-processing,-serial -Werror -cp "$jars/*" -d .tools/classes peers/TeraSort.java
jar --create --file .tools/terasort.jar -C .tools/classes .
