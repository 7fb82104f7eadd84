#!/usr/bin/env bash
# Everything that must hold before a change is handed in, and a table at the end.
#
#   scripts/check.sh                  all stages: format layering dev asan tsan tidy fuzz
#   scripts/check.sh format tidy      only these
#
# A stage that fails doesn't stop the others. What each printed is in build/check/STAGE.log.
source "$(dirname "$0")/common.sh"

readonly STAGES=(format layering dev asan tsan tidy fuzz)

run_format() { scripts/format.sh --check; }
run_layering() { python3 scripts/layering.py; }

build_and_test() {
  build "$1" -DDDP_BUILD_TESTS=ON
  phase "tests $1" "${under[@]}" \
    ctest --test-dir "build/$1" --output-on-failure --no-tests=error -j "$(nproc)" -LE bench
}

run_dev() { build_and_test dev; }
run_asan() {
  export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1
  build_and_test asan
}
run_tsan() {
  # ThreadSanitizer of GCC 12 can't map its shadow where the kernel randomises addresses over more than 28 bits. The
  # build is concerned too: it asks each test program for the names of its tests.
  if (($(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) > 28)); then under=(setarch "$(uname -m)" -R); fi
  export TSAN_OPTIONS=second_deadlock_stack=1
  build_and_test tsan
}
run_tidy() { build tidy -DDDP_BUILD_TESTS=ON; }
run_fuzz() {
  build fuzz -DDDP_BUILD_TESTS=ON
  phase "fuzz corpus" ctest --test-dir build/fuzz --output-on-failure --no-tests=error -L fuzz
}

needs_clang() {
  if ! have clang++ || ! have clang-tidy; then die "check.sh: clang is missing; scripts/setup.sh --dev installs it"; fi
}

wanted=()
for argument in "$@"; do
  case " ${STAGES[*]} " in
    *" $argument "*) wanted+=("$argument") ;;
    *) show_help ;;
  esac
done
((${#wanted[@]})) || wanted=("${STAGES[@]}")

mkdir -p build/check
declare -A result=() took=()
failed=0
for stage in "${wanted[@]}"; do
  begin=$SECONDS
  say "stage $stage"
  # A subshell of its own, not under `if` or `||`: there bash would go on after the first error inside.
  set +e
  (
    set -e
    case $stage in tidy | fuzz) needs_clang ;; esac
    "run_$stage"
  ) 2>&1 | tee "build/check/$stage.log"
  code=${PIPESTATUS[0]}
  set -e
  result[$stage]=passed
  took[$stage]=$((SECONDS - begin))
  if ((code != 0)); then
    result[$stage]="FAILED (exit code $code)"
    failed=1
  fi
done

printf '\n%-10s %-24s %8s  %s\n' stage result seconds log
for stage in "${wanted[@]}"; do
  printf '%-10s %-24s %8d  build/check/%s.log\n' "$stage" "${result[$stage]}" "${took[$stage]}" "$stage"
done
exit "$failed"
