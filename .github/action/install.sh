#!/usr/bin/env bash
# Provides the binary that VERSION asks for, adds its folder to the PATH and writes its path to
# the output "tokgate". VERSION "" builds the action's own source, v1.2.3 downloads that release
# and verifies its checksum, and a path names a binary that exists already.
set -euo pipefail

fail() {
  echo "::error title=tokgate::$1"
  exit 2
}

dir=$RUNNER_TEMP/tokgate
mkdir -p "$dir"

build() {
  command -v go >/dev/null || fail "version is empty, and there is no Go to build tokgate with: name a release"
  local suffix=
  [ "${RUNNER_OS:-}" != Windows ] || suffix=.exe
  tokgate=$dir/tokgate$suffix
  (cd "$GITHUB_ACTION_PATH" && CGO_ENABLED=0 go build -trimpath -o "$tokgate" ./cmd/tokgate)
}

download() {
  local os arch
  case ${RUNNER_OS:-$(uname -s)} in
    Linux) os=linux ;;
    macOS | Darwin) os=darwin ;;
    *) fail "there is no release for ${RUNNER_OS:-this system} that this action can unpack: leave version empty to build it" ;;
  esac
  case ${RUNNER_ARCH:-$(uname -m)} in
    X64 | x86_64) arch=amd64 ;;
    ARM64 | aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no release for ${RUNNER_ARCH:-this architecture}" ;;
  esac
  local number=${VERSION#v}
  local archive=tokgate_${number}_${os}_$arch.tar.gz sums=checksums.txt
  local from=${TOKGATE_RELEASES:-https://github.com/tokgate/tokgate/releases/download}/$VERSION
  for file in "$archive" "$sums"; do
    curl --fail --silent --show-error --location --retry 3 --output "$dir/$file" "$from/$file" || fail "could not download $file of $VERSION"
  done
  local want got
  want=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1 }' "$dir/$sums")
  if command -v sha256sum >/dev/null; then
    got=$(sha256sum "$dir/$archive")
  else
    got=$(shasum -a 256 "$dir/$archive")
  fi
  got=${got%% *}
  [ -n "$want" ] || fail "the checksums of $VERSION do not list $archive"
  [ "$got" = "$want" ] || fail "the checksum of $archive is $got, not $want: it is not what was released"
  tar -xzf "$dir/$archive" -C "$dir" tokgate
  tokgate=$dir/tokgate
}

case $VERSION in
  "") build ;;
  */*)
    [ -x "$VERSION" ] || fail "version names $VERSION, which is no program"
    tokgate=$(cd "$(dirname "$VERSION")" && pwd)/$(basename "$VERSION")
    ;;
  v[0-9]*)
    [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "version is no release: v1.2.3"
    download
    ;;
  *) fail "version is neither a release (v1.2.3) nor a path" ;;
esac

"$tokgate" version
echo "tokgate=$tokgate" >>"$GITHUB_OUTPUT"
dirname "$tokgate" >>"$GITHUB_PATH"

# An expression that names no input is empty too.
[ -n "${PLAN-}${WHEN-}" ] || echo "::notice title=tokgate::plan is empty: tokgate is installed, and nothing is run or judged"
