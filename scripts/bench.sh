#!/usr/bin/env bash
# Measures ddplaunch beside the physical limit and the peers that are found, and prints tables.
#
#   scripts/bench.sh [one-node|collectives|all] [--quick] [--output FILE]
#
#   one-node      N x /bin/true for 8, 64 and 512, start of the launcher to its exit
#   collectives   all_reduce of three sizes over shm and Gloo, 2 ranks
#   --quick       fewer rounds and no 512: a look, not a figure to quote
#
# Figures mean something only on an idle machine; the load is printed beside them. Peers: scripts/setup.sh --peers.
source "$(dirname "$0")/common.sh"

what=all
quick=0
output=/dev/null
while (($#)); do
  case $1 in
    one-node | collectives | all) what=$1 ;;
    --quick) quick=1 ;;
    --output) output=${2:?--output needs a file} && shift ;;
    *) show_help ;;
  esac
  shift
done

one_node=(--rounds 7)
collectives=(--rounds 5)
if ((quick)); then
  one_node=(--rounds 3 --counts 8 64)
  collectives=(--rounds 2)
fi

{
  phase "set-up" scripts/setup.sh --tests
  build release -DDDP_BUILD_TESTS=ON
} >&2

measure() {
  if [[ $what != collectives ]]; then python3 tests/bench/bench_launch.py build/release "${one_node[@]}"; fi
  if [[ $what != one-node ]]; then python3 tests/bench/bench_all_reduce.py build/release "${collectives[@]}"; fi
}
measure | tee "$output"
