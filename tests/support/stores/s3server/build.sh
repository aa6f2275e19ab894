#!/usr/bin/env bash
# Builds the S3 server into .tools/s3server, unless it is newer than its sources.
#
# It needs the Go that go.mod names. From 1.21 on Go fetches a newer one by itself; an older one, as
# Debian 12 has, is asked to fetch it as what it is for Go, a module, whose checksum it verifies.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../../.. && pwd)
[[ -x $root/.tools/s3server && -z $(find . -newer "$root/.tools/s3server") ]] && exit

go=go
wanted=$(sed -n 's/^go //p' go.mod)
if ! (cd / && GOTOOLCHAIN=local go version) | grep -Eq 'go1\.(2[1-9]|[3-9][0-9])'; then
    toolchain="golang.org/toolchain@v0.0.1-go$wanted.$(go env GOOS)-$(go env GOARCH)"
    fetched=$(cd / && go mod download -json "$toolchain" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    # A module's files come without the right to be run.
    mkdir -p "$root/.tools"
    rm -rf "$root/.tools/go"
    cp -r "$fetched" "$root/.tools/go"
    chmod -R u+w "$root/.tools/go"
    chmod +x "$root"/.tools/go/bin/* "$root"/.tools/go/pkg/tool/*/*
    export GOROOT="$root/.tools/go"
    go="$GOROOT/bin/go"
fi
export GOTOOLCHAIN=auto CGO_ENABLED=0
"$root/tools/step" "Building the S3 server" "$go" build -trimpath -ldflags=-s -o "$root/.tools/s3server" .
