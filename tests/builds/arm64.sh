#!/usr/bin/env bash
# 64-bit Arm from the same source: no warnings, and the kernels are right in an emulator.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/variant.sh"
needs aarch64-linux-gnu-g++ qemu-aarch64

build_check arm64 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
said=$(qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm64/check_kernels 25)
echo "$said"
grep -q '^neon .*checks$' <<< "$said"
