#!/bin/sh
# Install the peers: Python packages into ../.venv, everything else into .tools. Safe to repeat.
set -eu
cd "$(dirname "$0")"

for tool in python3 cargo g++ java mvn; do
    command -v "$tool" >/dev/null || {
        echo "setup.sh: $tool is missing (Debian: python3-venv, g++, default-jdk-headless, maven;" \
            "cargo by rustup)" >&2
        exit 1
    }
done

mkdir -p .tools
test -x ../.venv/bin/python || python3 -m venv ../.venv
../.venv/bin/python -m pip install --quiet --require-hashes -r requirements.txt
g++ -std=c++20 -Wall -Wextra -O2 -march=native -pthread peers/floor.cpp -o .tools/floor
cargo build --quiet --release --locked --manifest-path extsort/Cargo.toml --target-dir .tools/extsort
mvn --quiet --batch-mode -f hadoop/pom.xml dependency:copy-dependencies \
    -DoutputDirectory="$PWD/.tools/hadoop"
