#!/usr/bin/env bash
# From a bare Debian 12 to a training run on two processes: set-up, release build, train_mlp under ddplaunch.
# Arguments are train_mlp's own, for example `--help`.
source "$(dirname "$0")/common.sh"
[[ ${1:-} == -h ]] && show_help

phase "set-up" scripts/setup.sh
# A build folder that scripts/test.sh has made keeps its tests; a new one is spared their build.
fresh=()
[[ -e build/release/CMakeCache.txt ]] || fresh=(-DDDP_BUILD_TESTS=OFF)
build release "${fresh[@]}"

say "build/release/bin/ddplaunch --standalone --nproc_per_node=2 build/release/bin/train_mlp $*"
exec build/release/bin/ddplaunch --standalone --nproc_per_node=2 build/release/bin/train_mlp "$@"
