#!/usr/bin/env bash
# Makes the pages that check.mjs checks: pages.sh TOKGATE FOLDER PAGE…. All runs except the
# demo are simulated. Their verdicts do not matter here.
set -euo pipefail

tokgate=$1 out=$2
shift 2
here=$(dirname "$0")
for page in "$@"; do
  plan=$here/$page.hcl simulate=--simulate
  case $page in
    demo) plan=plans/demo.hcl simulate= ;;
    compare) plan=plans/compare.hcl ;;
    burst) plan=plans/reference/qwen3.5-35b-a3b-fp8.1x-h100.hcl ;;
    trace) plan=plans/traces/mooncake.hcl ;;
    reference) plan=plans/reference/qwen3.6-35b-a3b-mtp-fp8.1x-rtx-pro-6000.hcl ;;
  esac
  rm -rf "${out:?}/$page"
  "$tokgate" run -q $simulate --out "$out/$page" "$plan" >/dev/null || [ $? -le 3 ]
  "$tokgate" report "$out/$page" --brief "$out/$page-brief.html" >/dev/null
done
"$tokgate" report "$out/demo" "$out/people" --html "$out/together.html" >/dev/null
"$tokgate" history demo --html "$out/history.html" >/dev/null
