# shellcheck shell=bash
# What the scripts share; sourced, not run. Leaves the shell in the root of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Only a comment block at the top of the calling script is its help.
show_help() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"; exit 0; }

have() { command -v "$1" >/dev/null 2>&1; }

# phase NAME COMMAND …: runs it, says how long it took, keeps its exit code.
phase() {
  local name=$1 code=0
  shift
  say "$name"
  local begin=$SECONDS
  "$@" || code=$?
  if ((code == 0)); then
    say "$name: done in $((SECONDS - begin)) s"
  else
    say "$name: FAILED with exit code $code after $((SECONDS - begin)) s" >&2
  fi
  return "$code"
}

# As many compilers as there are cores, but none without 1.5 GiB of memory: Asio is hungry.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo 2>/dev/null || echo "$cores")
  ((memory >= 1)) || memory=1
  echo $((cores < memory ? cores : memory))
}

use_ccache() {
  if have ccache; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  fi
}

# Put before what a build or a test runs, where that needs another environment.
under=()

# build PRESET [cmake's configure options …]
build() {
  local preset=$1
  shift
  use_ccache
  phase "configure $preset" cmake --preset "$preset" "$@"
  phase "build $preset" "${under[@]}" cmake --build "build/$preset" -j "$(build_jobs)"
}
