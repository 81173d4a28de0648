#!/usr/bin/env bash
# From `git clone` to the first verdict on an endpoint of one's own, in a folder
# that is removed afterwards. The endpoint is the built-in server, started as
# somebody else's would be. Usage: newcomer.sh REPOSITORY
set -euo pipefail
repository=$(cd "$1" && pwd)
scratch=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"

say() { printf '\n$ %s\n' "$*"; }

# The three commands.
say "git clone $repository tokgate && make -C tokgate build"
git clone -q "$repository" tokgate && make -s -C tokgate build
export PATH="$scratch/tokgate/bin:$PATH"

# Their server.
tokgate sim --listen 127.0.0.1:0 >sim.log 2>&1 &
server=$!
for _ in $(seq 100); do
  url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' sim.log | head -1 || true)
  [ -n "$url" ] && break
  kill -0 "$server" || { cat sim.log; exit 1; }
  sleep 0.1
done
[ -n "$url" ] || { cat sim.log; exit 1; }

say "tokgate init --url $url"
tokgate init --url "$url"

say "tokgate run tokgate.hcl"
code=0
tokgate run tokgate.hcl || code=$?

# A verdict is 0, 1 or 3; anything else is none.
case $code in
  0 | 1 | 3) ;;
  *) echo "exit $code is no verdict"; exit 1 ;;
esac
for f in results.json junit.xml report.md report.html samples.jsonl; do
  [ -s "results/tokgate/$f" ] || { echo "results/tokgate/$f is missing"; exit 1; }
done
printf '\nfirst verdict after %s s: exit %s\n' "$SECONDS" "$code"
