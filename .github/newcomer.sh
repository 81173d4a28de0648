#!/usr/bin/env bash
# Follows a new user from `git clone` to the first verdict on a server, in a folder
# that is removed afterwards. The built-in server stands in for the user's own.
# Usage: newcomer.sh REPOSITORY
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

# These are the three commands that the README promises.
say "git clone $repository tokgate && make -C tokgate build"
git clone -q "$repository" tokgate && make -s -C tokgate build
export PATH="$scratch/tokgate/bin:$PATH"

# The user's server.
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

# The exit codes 0, 1 and 3 are verdicts; any other is not.
case $code in
  0 | 1 | 3) ;;
  *) echo "exit $code is no verdict"; exit 1 ;;
esac
for f in results.json junit.xml report.md report.html samples.jsonl; do
  [ -s "results/tokgate/$f" ] || { echo "results/tokgate/$f is missing"; exit 1; }
done
printf '\nfirst verdict after %s s: exit %s\n' "$SECONDS" "$code"
