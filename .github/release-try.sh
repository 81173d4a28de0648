#!/usr/bin/env bash
# Makes what a release holds, without a tag and without goreleaser, and tries it: archives,
# checksums, man pages, completions, licences, the action's download, the image.
# Usage: release-try.sh OUT [OS/ARCH…]; OUT is a folder.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
platforms=${*:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
number=0.0.0-try
ldflags="-s -w -X main.version=v$number -X main.commit=$(git rev-parse HEAD) -X main.date=$(TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ HEAD)"
make -s pages licenses >/dev/null
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
mkdir -p "$out/v$number"
rm -f "$out/v$number"/*

for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/} binary=tokgate
  [ "$os" != windows ] || binary=tokgate.exe
  stage=$(mktemp -d)
  GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -trimpath -ldflags "$ldflags" -o "$stage/$binary" ./cmd/tokgate
  mkdir "$stage/schema"
  cp LICENSE README.md CHANGELOG.md "$stage"
  cp plan/schema/plan.schema.json report/schema/results.schema.json "$stage/schema"
  cp -r bin/licenses bin/man bin/completions "$stage"
  if [ "$os" = windows ]; then
    python3 -m zipfile -c "$out/v$number/tokgate_${number}_${os}_$arch.zip" "$stage"/*
  else
    # shellcheck disable=SC2046 # no name has a blank
    tar -C "$stage" --owner=root --group=root --sort=name --mtime="@$(git show -s --format=%ct HEAD)" -czf "$out/v$number/tokgate_${number}_${os}_$arch.tar.gz" $(ls "$stage") # names without ./, as the action expects
  fi
  rm -rf "$stage"
done
(cd "$out/v$number" && sha256sum -- * >checksums.txt)
ls -l "$out/v$number"

echo "$platforms" | grep -qw "$host" || { echo "nothing here to try: no archive of $host"; exit 0; }
try=$(mktemp -d)
trap 'rm -rf "$try"' EXIT
echo "the action downloads v$number, and checks its sum"
RUNNER_TEMP=$try GITHUB_PATH=$try/path GITHUB_OUTPUT=$try/output GITHUB_ACTION_PATH=$PWD VERSION=v$number TOKGATE_RELEASES=file://$out \
  bash .github/action/install.sh
"$try/tokgate/tokgate" version
"$try/tokgate/tokgate" run --simulate --out "$try/results" plans/demo.hcl | tail -1
echo "an archive that was changed is refused"
echo x >>"$out/v$number/tokgate_${number}_${host/\//_}.tar.gz"
if RUNNER_TEMP=$try GITHUB_PATH=$try/path GITHUB_OUTPUT=$try/output GITHUB_ACTION_PATH=$PWD VERSION=v$number TOKGATE_RELEASES=file://$out \
  bash .github/action/install.sh; then
  echo "it was not refused"
  exit 1
fi
truncate -s -2 "$out/v$number/tokgate_${number}_${host/\//_}.tar.gz"
(cd "$out/v$number" && sha256sum --quiet -c checksums.txt)

builder=$(command -v buildah || command -v podman || true)
if [ -z "$builder" ]; then
  echo "no buildah or podman: the image is not tried"
  exit 0
fi
cp "$try/tokgate/tokgate" "$try/binary"
printf 'FROM scratch\nCOPY binary /tokgate\nUSER 65532\nENTRYPOINT ["/tokgate"]\n' >"$try/Containerfile"
"$builder" build -q -t "tokgate:$number" -f "$try/Containerfile" "$try"
if [ "${builder##*/}" = buildah ]; then
  container=$(buildah from "tokgate:$number")
  buildah run --isolation chroot "$container" -- /tokgate version
  buildah rm "$container" >/dev/null
else
  podman run --rm --network none "tokgate:$number" version
fi
echo "the image tokgate:$number was built, and runs; its base here is scratch, not distroless"
