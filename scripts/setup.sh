#!/usr/bin/env bash
# Installs what ddplaunch needs and is missing, on Debian and Ubuntu. Harmless when repeated: with everything in place
# it changes nothing and asks no server.
#
#   scripts/setup.sh            to build and run it
#   scripts/setup.sh --tests    … and to run the tests (PyTorch among them: 300 MB)
#   scripts/setup.sh --dev      … and to work on it: clang, clang-tidy, clang-format, libFuzzer, ccache
#   scripts/setup.sh --peers    … and the launchers that the benchmarks compare with
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

groups=(build)
for option in "$@"; do
  case $option in
    --tests) groups+=(test) ;;
    --dev) groups+=(test dev) ;;
    --peers) groups+=(peer) ;;
    -h | --help) show_help ;;
    *) die "setup.sh: unknown option $option (--tests, --dev, --peers)" ;;
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

if ! have apt-get || ! have dpkg-query; then
  say "no Debian or Ubuntu: nothing is installed. What is needed: ${BUILD_NEEDS//!/}"
  have cmake || die "setup.sh: no cmake in PATH"
  check_versions
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
