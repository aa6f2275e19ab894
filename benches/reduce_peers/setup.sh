#!/bin/sh
# Install the peers: Python packages into .venv, everything else into .tools. Safe to repeat.
set -eu
cd "$(dirname "$0")"

for tool in python3 cargo javac jar mvn; do
    command -v "$tool" >/dev/null || {
        echo "setup.sh: $tool is missing (Debian: python3-venv, default-jdk-headless, maven; cargo by" \
            "rustup)" >&2
        exit 1
    }
done

mkdir -p .tools/classes
test -x .venv/bin/python || python3 -m venv .venv
.venv/bin/python -m pip install --quiet --require-hashes -r requirements.txt
# For this processor: as fast as possible.
RUSTFLAGS="-C target-cpu=native" cargo build --quiet --release --locked \
    --manifest-path prototype/Cargo.toml --target-dir .tools/target
cp .tools/target/release/prototype .tools/prototype
(cd .tools/s3a 2>/dev/null && sha256sum --check --quiet --strict ../../s3a/jars.sha256 2>/dev/null) || {
    rm -rf .tools/s3a
    mvn --quiet --batch-mode -f s3a/pom.xml dependency:copy-dependencies \
        -DoutputDirectory="$PWD/.tools/s3a"
    (cd .tools/s3a && sha256sum --check --quiet --strict ../../s3a/jars.sha256)
}
jars=$(.venv/bin/python -c 'import pyspark; print(pyspark.__path__[0])')/jars
javac -Xlint:all,-path,-processing,-serial,-classfile -Werror -cp "$jars/*" -d .tools/classes peers/*.java
jar --create --file .tools/peers.jar -C .tools/classes .
