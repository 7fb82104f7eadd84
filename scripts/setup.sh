#!/usr/bin/env bash
# Installs what ddplaunch needs and is missing, on Debian and Ubuntu. Harmless when repeated: with everything in place
# it changes nothing and asks no server.
#
#   scripts/setup.sh            to build and run it
#   scripts/setup.sh --tests    … and to run the tests (PyTorch among them: 300 MB)
#   scripts/setup.sh --dev      … and to work on it: clang, clang-tidy, clang-format, libFuzzer, ccache
#   scripts/setup.sh --peers    … and the launchers that the benchmarks compare with
#   scripts/setup.sh --torch2   … and a current PyTorch 2 in .venv-torch2, for the tests and benchmarks that look for
#                               it: 3 GB to fetch and 5.5 GB on disk, CUDA's libraries included, without which PyPI's
#                               PyTorch can't be imported. Removing the folder takes all of it away again.
#
# As root it installs; else with sudo, if that asks for no password; else it prints the command for you to run.
source "$(dirname "$0")/common.sh"

# One need a word: a package, or alternatives a|b of which one is enough. `!tool` is satisfied by any such command in
# PATH, whoever installed it, and by the package of that name after a colon otherwise.
readonly BUILD_NEEDS='!c++:g++ !cmake:cmake !ninja:ninja-build libboost1.81-dev|libboost1.83-dev|libboost1.88-dev
  libboost-json1.81-dev|libboost-json1.83-dev|libboost-json1.88-dev libcli11-dev libspdlog-dev libgloo-dev'
readonly TEST_NEEDS='catch2 librapidcheck-dev python3 python3-torch !ip:iproute2 !strace:strace !ps:procps'
readonly DEV_NEEDS='!clang++:clang !clang-tidy:clang-tidy !clang-format:clang-format !ccache:ccache !git:git
  libclang-rt-14-dev|libclang-rt-18-dev|libclang-rt-19-dev'
readonly PEER_NEEDS='openmpi-bin libopenmpi-dev mpich parallel python3 python3-torch'
readonly TORCH2_NEEDS='python3 python3-venv'
readonly TORCH2=.venv-torch2 TORCH2_DISK_MB=7000

groups=(build)
for option in "$@"; do
  case $option in
    --tests) groups+=(test) ;;
    --dev) groups+=(test dev) ;;
    --peers) groups+=(peer) ;;
    --torch2) groups+=(torch2) ;;
    -h | --help) show_help ;;
    *) die "setup.sh: unknown option $option (--tests, --dev, --peers, --torch2)" ;;
  esac
done

declare -A installed=()
read_installed() {
  local state package
  installed=()
  while read -r state package; do
    if [[ $state == ii ]]; then installed[$package]=1; fi
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null || true)
}

# missing_of NEEDS: those that are not here, as written, but `!tool:package` as its package.
missing_of() {
  local need name
  for need in $1; do
    if [[ $need == '!'* ]]; then
      name=${need#!}
      have "${name%%:*}" || echo "${name#*:}"
      continue
    fi
    for name in ${need//|/ }; do
      [[ -n ${installed[$name]:-} ]] && continue 2
    done
    echo "$need"
  done
}

needs_of() {
  case $1 in
    build) echo "$BUILD_NEEDS" ;;
    test) echo "$TEST_NEEDS" ;;
    dev) echo "$DEV_NEEDS" ;;
    peer) echo "$PEER_NEEDS" ;;
    torch2) echo "$TORCH2_NEEDS" ;;
  esac
}

as_root() {
  if ((EUID == 0)); then
    env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
  else
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
  fi
}

# The first alternative that this system's package lists know.
chosen_of() {
  local need name names=()
  for need in "$@"; do
    for name in ${need//|/ }; do
      if [[ $need != *'|'* ]] || apt-cache show "$name" >/dev/null 2>&1; then
        names+=("$name")
        continue 2
      fi
    done
    names+=("${need%%|*}")
  done
  echo "${names[@]}"
}

refresh_lists() { as_root apt-get -qq -o Acquire::Retries=3 update; }

install() {
  local packages log
  if ((EUID != 0)) && ! sudo -n true 2>/dev/null; then
    die "setup.sh: not root, and sudo is missing or wants a password. Run this, then try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $(chosen_of "$@")"
  fi
  # An image comes without lists; they know no package at all.
  if ! compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null; then
    say "fetching the package lists"
    refresh_lists
  fi
  read -r -a packages < <(chosen_of "$@")
  log=$(mktemp)
  local command=(apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  say "installing ${packages[*]}"
  if ! as_root "${command[@]}" "${packages[@]}" >"$log" 2>&1; then
    say "that failed; once more with fresh package lists"
    refresh_lists
    read -r -a packages < <(chosen_of "$@")
    as_root "${command[@]}" "${packages[@]}" >"$log" 2>&1 || {
      cat "$log" >&2
      rm -f "$log"
      die "setup.sh: apt-get could not install ${packages[*]} (its own words are above)"
    }
  fi
  rm -f "$log"
}

at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

check_versions() {
  local compiler=${CXX:-c++} version
  have "$compiler" || die "setup.sh: no C++ compiler ($compiler) in PATH"
  if "$compiler" --version | grep -qi clang; then
    version=$("$compiler" -dumpversion)
    at_least "$version" 14 || die "setup.sh: $compiler is clang $version; 14 or newer is needed"
  else
    version=$("$compiler" -dumpfullversion -dumpversion)
    at_least "$version" 12 ||
      die "setup.sh: $compiler is version $version; g++ 12 or newer is needed (install it and set CXX=g++-12)"
  fi
  local cmake_version
  cmake_version=$(cmake --version | awk 'NR == 1 {print $3}')
  at_least "$cmake_version" 3.22 || die "setup.sh: cmake is version $cmake_version; 3.22 or newer is needed"
  say "compiler $compiler $version, cmake $cmake_version"
}

# A folder of its own, so that the system's PyTorch stays as it is. An unfinished one is begun again.
install_torch2() {
  local python=/usr/bin/python3 version log free
  if version=$("$TORCH2/bin/python" -c 'import numpy, torch; print(torch.__version__)' 2>/dev/null); then
    say "torch2: $TORCH2 has PyTorch $version"
    return
  fi
  [[ -x $python ]] || python=python3
  free=$(df --output=avail -m . | awk 'NR == 2 {print $1}')
  ((free >= TORCH2_DISK_MB)) || die "setup.sh: $TORCH2 needs $TORCH2_DISK_MB MB, and only $free MB are free here"
  say "torch2: fetching PyTorch 2 into $TORCH2: 3 GB, some minutes"
  rm -rf "$TORCH2"
  "$python" -m venv "$TORCH2" || die "setup.sh: $python cannot make a virtual environment (is python3-venv there?)"
  log=$(mktemp)
  if ! "$TORCH2/bin/python" -m pip install -q --no-cache-dir --progress-bar off 'torch>=2,<3' numpy >"$log" 2>&1 ||
    ! "$TORCH2/bin/python" -c 'import torch, numpy' >>"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    die "setup.sh: pip could not install PyTorch 2 into $TORCH2 (its own words are above)"
  fi
  rm -f "$log"
  say "torch2: $TORCH2 takes $(du -sm "$TORCH2" | cut -f 1) MB"
}

wants_torch2() { [[ " ${groups[*]} " == *' torch2 '* ]]; }

if ! have apt-get || ! have dpkg-query; then
  say "no Debian or Ubuntu: nothing is installed. What is needed: ${BUILD_NEEDS//!/}"
  have cmake || die "setup.sh: no cmake in PATH"
  check_versions
  if wants_torch2; then install_torch2; fi
  exit 0
fi

read_installed
missing=()
for group in $(printf '%s\n' "${groups[@]}" | awk '!seen[$0]++'); do
  mapfile -t absent < <(missing_of "$(needs_of "$group")")
  if ((${#absent[@]})); then
    say "$group: missing ${absent[*]%%|*}"
    missing+=("${absent[@]}")
  else
    say "$group: everything is there"
  fi
done
if ((${#missing[@]})); then
  install "${missing[@]}"
fi
check_versions
if wants_torch2; then install_torch2; fi
