#!/usr/bin/env bash
# Checks the git ref or commit BASE out into a worktree beside the workspace and
# says where in the output "dir".
set -euo pipefail

cd "$GITHUB_WORKSPACE"
commit=
# What the remote has goes before a local branch of the same name, which may be
# old on a runner that keeps its checkout.
for name in "refs/remotes/origin/$BASE" "$BASE"; do
  commit=$(git rev-parse --verify --quiet --end-of-options "$name^{commit}") && break
done
if [ -z "$commit" ]; then
  # A shallow checkout has nothing but its own commit.
  if ! git fetch --quiet --no-tags --depth=1 -- origin "$BASE"; then
    echo "::error title=tokgate::base is no ref or commit that can be had: check out with fetch-depth 0, or keep the credentials of the checkout"
    exit 2
  fi
  commit=$(git rev-parse --verify FETCH_HEAD)
fi

dir=$RUNNER_TEMP/tokgate-base
# One that an earlier job left behind.
rm -rf "$dir"
git worktree prune
git worktree add --quiet --detach "$dir" "$commit"
echo "base: $commit"
echo "dir=$dir" >>"$GITHUB_OUTPUT"
