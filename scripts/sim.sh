#!/bin/sh
# Runs the simulation: scripts/sim.sh [seeds] (20000). The first seed comes from the commit, so that each
# commit tries others; a seed that fails is printed with the command that replays it.
set -eu
cd "$(dirname "$0")/.."
seeds=${1:-20000}
build=${DDP_BUILD:-build/release}
if [ ! -f "$build/build.ninja" ]; then
  cmake --preset release -B "$build"
fi
cmake --build "$build" --target ddp_sim
commit=$(git rev-parse --short=7 HEAD 2> /dev/null || echo 1)
first=$((0x$commit))
exec "$build/test_bin/ddp_sim" --seeds "$first-$((first + seeds - 1))"
