#!/usr/bin/env bash
# Every script parses; those that people call are executable and stop at their first error.
set -euo pipefail
cd "$(dirname "$0")/../../.."

bad=0
complain() { echo "$1"; bad=1; }

while IFS= read -r script; do
  bash -n "$script" || complain "$script: does not parse"
  if [[ $script == tests/* || $script == */common.sh ]]; then continue; fi
  [[ -x $script ]] || complain "$script: is not executable"
  grep -qE '^set -[a-z]*e|^source .*common.sh' "$script" || complain "$script: has no set -e"
done < <(find scripts tests -name '*.sh' -not -path '*/__pycache__/*'; echo .ci/run)

while IFS= read -r script; do
  python3 -c 'import sys; compile(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1], "exec")' "$script" ||
    complain "$script: does not compile"
done < <(find scripts tests -name '*.py' -not -path '*/__pycache__/*')
exit "$bad"
