#!/usr/bin/env bash
# Checks on a machine with one NVIDIA GPU: the NCCL plug-in alone, then launcher, SDK and plug-in together.
#
#   scripts/gpu_check.sh                builds build/release if it is not there, and checks it. Installs nothing.
#   scripts/gpu_check.sh FOLDER         checks a build folder, or what --pack made.
#   scripts/gpu_check.sh --pack FOLDER  copies what the check needs out of build/release, with its libraries, so
#                                       that a machine without a compiler or Boost can run it. Needs no GPU.
#
# Exit code 77: this machine has no GPU or no NCCL; nothing was checked.
source "$(dirname "$0")/common.sh"
[[ ${1:-} == -h || ${1:-} == --help ]] && show_help

programs=(bin/ddplaunch bin/hello bin/train_mlp test_bin/nccl_device_test test_bin/nccl_worker)

build_release() {
  build release -DDDP_BUILD_TESTS=ON
}

all_built() {
  local program
  for program in "${programs[@]}"; do
    [[ -x $1/$program ]] || return 1
  done
  [[ -e $1/lib/ddp/libddp_nccl.so ]]
}

# The libraries of the C and C++ runtime and the loader are the other machine's own.
pack() {
  local from=build/release to=$1 program library
  all_built "$from" || build_release
  mkdir -p "$to"/{bin,test_bin,lib/ddp,libs}
  for program in "${programs[@]}"; do
    cp -f "$from/$program" "$to/$program"
  done
  cp -fP "$from"/lib/libddp.so* "$to/lib/"
  cp -f "$from"/lib/ddp/*.so "$to/lib/ddp/"
  ldd "${programs[@]/#/$to/}" "$to"/lib/libddp.so "$to"/lib/ddp/*.so | awk '$2 == "=>" && $3 ~ "^/" {print $3}' |
    sort -u | while read -r library; do
      case $(basename "$library") in
        libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | ld-linux* | libstdc++* | libgcc_s*) ;;
        libddp.so*) ;;
        *) cp -fL "$library" "$to/libs/" ;;
      esac
    done
  say "packed into $to: $(du -sh "$to" | cut -f1)"
}

# NCCL from the loader's folders, else the one that Python's packages bring.
find_nccl() {
  have python3 || return 0
  local folder
  folder=$(python3 - <<'PYTHON'
import ctypes, glob, os, sys
try:
    ctypes.CDLL("libnccl.so.2")
except OSError:
    for path in sys.path:
        for found in glob.glob(os.path.join(path, "nvidia", "nccl", "lib", "libnccl.so.2")):
            print(os.path.dirname(found))
            sys.exit()
PYTHON
  )
  [[ -z $folder ]] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder"
}

describe_machine() {
  if have nvidia-smi; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sed 's/^/   GPU, driver, memory: /'
  elif [[ -r /proc/driver/nvidia/version ]]; then
    sed -n 1p /proc/driver/nvidia/version
  fi
  have python3 && python3 - <<'PYTHON'
import ctypes
try:
    version = ctypes.c_int()
    ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version))
    print("   NCCL:", version.value)
except OSError as error:
    print("   NCCL: none,", error)
PYTHON
  return 0
}

if [[ ${1:-} == --pack ]]; then
  [[ -n ${2:-} ]] || die "gpu_check.sh: --pack wants a folder"
  pack "$2"
  exit 0
fi

folder=${1:-build/release}
if ! all_built "$folder"; then
  [[ $folder == build/release ]] || die "gpu_check.sh: $folder lacks some of: ${programs[*]}"
  build_release
fi
folder=$(realpath "$folder")
[[ ! -d $folder/libs ]] || export LD_LIBRARY_PATH="$folder/libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DDP_NCCL_PLUGIN=$folder/lib/ddp/libddp_nccl.so
find_nccl
say "this machine"
describe_machine

tests=$("$folder/test_bin/nccl_device_test" 2>&1) && passed=yes || passed=no
printf '%s\n' "$tests"
if [[ $tests == *"SKIPPED: "* ]]; then
  say "nothing was checked: $(sed -n 's/^SKIPPED: //p' <<<"$tests" | head -n 1)"
  exit 77
fi
[[ $passed == yes ]] || die "gpu_check.sh: the NCCL plug-in's own tests FAILED"

# One GPU carries one rank.
under_launcher() {
  DDP_BACKEND=nccl timeout 120 "$folder/bin/ddplaunch" --standalone --nproc_per_node=1 "$@"
}
phase "GPU memory through launcher, SDK and NCCL" under_launcher "$folder/test_bin/nccl_worker"
phase "hello in an NCCL group" under_launcher "$folder/bin/hello"
phase "train_mlp in an NCCL group" under_launcher "$folder/bin/train_mlp" --epochs=2
say "all GPU checks passed"
