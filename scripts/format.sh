#!/usr/bin/env bash
# Formats every C and C++ source in place; `--check` changes nothing and fails where something would change.
source "$(dirname "$0")/common.sh"

mode=(-i)
case ${1:-} in
  '') ;;
  --check) mode=(--dry-run -Werror) ;;
  *) show_help ;;
esac
have clang-format || die "format.sh: clang-format is missing; scripts/setup.sh --dev installs it"
find rendezvous worker_sdk launcher tests -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.c' \) \
  -print0 | xargs -0 -r -P "$(nproc)" -n 16 clang-format "${mode[@]}"
