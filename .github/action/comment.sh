#!/usr/bin/env bash
# Comments on the pull request of the run that has ended, from the results in the
# folder RESULTS. Each plan has one comment, which is edited when the gate runs again.
# WHEN is always, change or red.
#
# A fork may have written the results. So nothing in them is executed, and none of
# their text is posted: tokgate reads only the figures and writes the comment itself.
# GitHub, and not the results, says which pull request has run.
set -euo pipefail

case $WHEN in
  always | change | red) ;;
  *)
    echo "::error title=tokgate::comment is $WHEN: always, change or red"
    exit 2
    ;;
esac

notice() { echo "::notice title=tokgate::$1"; }

number=$(gh api --method GET "repos/$GITHUB_REPOSITORY/pulls" -f state=open -f head="$HEAD_OWNER:$HEAD_BRANCH" \
  --jq 'map(select(.head.sha == env.HEAD_SHA)) | .[0].number // empty')
if [ -z "$number" ]; then
  notice "no open pull request has this commit as its head: nothing is said"
  exit
fi

posted=0
while IFS= read -r -d '' file; do
  if [ "$posted" -ge 5 ]; then
    notice "more than five plans: the rest is in the run"
    break
  fi
  body=$RUNNER_TEMP/tokgate-comment.md
  if ! "$TOKGATE" report --github=off --comment "$body" "$(dirname "$file")" >/dev/null 2>&1; then
    notice "some results cannot be read, and are left out"
    continue
  fi
  { IFS= read -r marker && IFS= read -r news; } <"$body"
  [[ $marker =~ ^'<!-- tokgate:'[A-Za-z0-9._-]+' -->'$ ]] || continue
  printf '\n[The run](%s) ended with %s.\n' "$RUN_URL" "$CONCLUSION" >>"$body"

  # A comment with the marker that somebody else wrote is not touched.
  id=$(MARKER=$marker gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$number/comments" \
    --jq '.[] | select(.user.login == "github-actions[bot]" and (.body | startswith(env.MARKER))) | .id' | head -n 1)
  if [ -n "$id" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" -F body=@"$body"
  elif [ "$WHEN" = always ] || [ "$news" = '<!-- red -->' ] || { [ "$WHEN" = change ] && [ "$news" = '<!-- changed -->' ]; }; then
    gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$number/comments" -F body=@"$body"
  else
    continue
  fi
  posted=$((posted + 1))
done < <(find "$RESULTS" -name results.json -type f -size -20000k -print0 | sort -z)
[ "$posted" -gt 0 ] || notice "there is nothing to comment"
