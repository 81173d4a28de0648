#!/usr/bin/env bash
# Replaces this shell by `tokgate run`, with the arguments that the inputs ask for.
# An input holds one value a line.
set -euo pipefail

args=(run)

# add FLAG LINES adds each non-empty line as an argument, after FLAG unless FLAG is empty.
add() {
  local flag=$1 line
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"} # without leading white space
    [ -n "$line" ] || continue
    [ -z "$flag" ] || args+=("$flag")
    args+=("$line")
  done <<<"$2"
}

add --var-file "$VAR_FILES"
add --var "$VARS"
[ -z "$BASE_DIR" ] || args+=(--base "$BASE_DIR")
if [ -n "$POLICY" ]; then
  # Without a base, the policy would come from the pull request itself.
  [ -n "$BASE_DIR" ] || { echo "::error title=tokgate::policy needs base: it is read from there"; exit 2; }
  args+=(--policy "$BASE_DIR/$POLICY")
fi
add "" "$MORE"
args+=(--)
add "" "$PLAN"

exec "$TOKGATE" "${args[@]}"
