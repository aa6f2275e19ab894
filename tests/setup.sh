#!/usr/bin/env bash
# Brings in what the tests need: from Debian Chromium to look at reports, Java and Maven for Hadoop,
# git to tell what belongs to the project, file systems to lay out, Go for the S3 server; the server
# itself, into .tools.
# As root it installs what is missing; otherwise it says how, in one line, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v chromium chromium-browser google-chrome >/dev/null || missing+=(chromium)
command -v javac >/dev/null || missing+=(default-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
command -v git >/dev/null || missing+=(git)
command -v mkfs.btrfs >/dev/null || missing+=(btrfs-progs)
command -v mkfs.xfs >/dev/null || missing+=(xfsprogs)
command -v go >/dev/null || missing+=(golang-go)
if [[ ${#missing[@]} -gt 0 ]]; then
    if [[ $EUID -ne 0 ]]; then
        echo "The tests need more of Debian: sudo apt-get install ${missing[*]}" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    tools/step "Refreshing Debian's package lists" apt-get update -q
    tools/step "Installing ${missing[*]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
tests/support/s3server/build.sh
