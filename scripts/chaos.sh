#!/bin/sh
# Kills ddplaunch's own processes at random moments and looks for what is left: scripts/chaos.sh [kills] (1000). Prints
# the slowest clean-up and the share above the 2 s that are promised; a failing trial is printed with how to repeat it.
set -eu
cd "$(dirname "$0")/.."
kills=${1:-1000}
build=${DDP_BUILD:-build/release}
if [ ! -f "$build/build.ninja" ]; then
  cmake --preset release -B "$build" -DDDP_BUILD_TESTS=ON
fi
cmake --build "$build" --target ddplaunch scripted_worker
DDPLAUNCH=$PWD/$build/bin/ddplaunch SCRIPTED_WORKER=$PWD/$build/test_bin/scripted_worker \
  exec python3 tests/integration/launcher_chaos.py --trials "$kills"
