#!/usr/bin/env bash
# The other compiler: no warnings, and the kernel tests on what it makes. With threads of our own, because its OpenMP
# would be a second runtime beside torch's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/variant.sh"
needs clang++

export CXX=clang++
build_extension clang -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DRECURRA_OPENMP=OFF
build/clang/bin/python -m pytest -q -n auto --maxprocesses 8 -p no:cacheprovider $kernel_tests \
  tests/native/test_threads.py tests/native/test_memory.py
