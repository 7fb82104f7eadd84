#!/usr/bin/env bash
# Measures ddplaunch beside the physical limit and the peers that are found, and prints tables.
#
#   scripts/bench.sh [launch|failure|store|all_reduce|all] [--quick] [--output FILE]
#
#   launch        N x /bin/true for 8, 64 and 512, start of the launcher to its exit; the launcher's memory
#   failure       one of 8 workers fails: until the next round's first worker runs, until the launcher is gone
#   store         the worker store's server: requests, wake-ups, and up to 8192 connections that join at once
#   all_reduce    three sizes over shm and Gloo, 2 ranks
#   --quick       fewer rounds and smaller sizes: a look, not a figure to quote
#
# Figures mean something only on an idle machine; the load is printed beside them. All of it takes about half an
# hour. Peers: scripts/setup.sh --peers --torch2.
source "$(dirname "$0")/common.sh"

readonly BENCHMARKS=(launch failure store all_reduce)
what=all
quick=0
output=/dev/null
while (($#)); do
  case $1 in
    launch | failure | store | all_reduce | all) what=$1 ;;
    --quick) quick=1 ;;
    --output) output=${2:?--output needs a file} && shift ;;
    *) show_help ;;
  esac
  shift
done

declare -A options=([launch]='--rounds 7' [failure]='--rounds 9' [store]='--rounds 7' [all_reduce]='--rounds 5')
if ((quick)); then
  options=([launch]='--rounds 3 --counts 8 64' [failure]='--rounds 3' [all_reduce]='--rounds 2'
    [store]='--rounds 2 --seconds 0.2 --ranks 512 1024 --join-rounds 1')
fi

{
  phase "set-up" scripts/setup.sh --tests
  build release -DDDP_BUILD_TESTS=ON
} >&2

measure() {
  local name
  for name in "${BENCHMARKS[@]}"; do
    [[ $what == all || $what == "$name" ]] || continue
    # shellcheck disable=SC2086  # each word is an argument
    python3 "tests/bench/bench_$name.py" build/release ${options[$name]}
  done
}
measure | tee "$output"
