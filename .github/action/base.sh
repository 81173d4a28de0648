#!/usr/bin/env bash
# Checks out the git ref or commit BASE into a worktree beside the workspace, and
# writes its folder to the output "dir".
set -euo pipefail

cd "$GITHUB_WORKSPACE"
commit=
# The remote's branch comes before a local branch of the same name, which may be
# old on a runner that keeps its checkout.
for name in "refs/remotes/origin/$BASE" "$BASE"; do
  commit=$(git rev-parse --verify --quiet --end-of-options "$name^{commit}") && break
done
if [ -z "$commit" ]; then
  # A shallow checkout has only its own commit, so fetch the base.
  if ! git fetch --quiet --no-tags --depth=1 -- origin "$BASE"; then
    echo "::error title=tokgate::base is no ref or commit that can be had: check out with fetch-depth 0, or keep the credentials of the checkout"
    exit 2
  fi
  commit=$(git rev-parse --verify FETCH_HEAD)
fi

dir=$RUNNER_TEMP/tokgate-base
# An earlier job may have left a worktree behind.
rm -rf "$dir"
git worktree prune
git worktree add --quiet --detach "$dir" "$commit"
echo "base: $commit"
echo "dir=$dir" >>"$GITHUB_OUTPUT"
