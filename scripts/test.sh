#!/usr/bin/env bash
# Set-up, release build, all tests. Arguments are passed on to ctest: scripts/test.sh -R store
source "$(dirname "$0")/common.sh"
[[ ${1:-} == -h || ${1:-} == --help ]] && show_help

phase "set-up" scripts/setup.sh --tests
build release -DDDP_BUILD_TESTS=ON
# Tests that start processes or take ports are marked to run alone; the others share the cores.
phase "tests" ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" "$@"
