#!/usr/bin/env bash
# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, without Python and with it, and under
# ThreadSanitizer, which knows our own threads but not OpenMP's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/variant.sh"
needs g++

export CXX=g++
unset SKBUILD_CMAKE_DEFINE  # warnings of instrumented code mean nothing
# More memory than there is must be answered with null, as it is without a sanitizer.
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1 TSAN_OPTIONS=second_deadlock_stack=1
# ThreadSanitizer wants its memory where a kernel that shuffles addresses may have put something else.
still=$(setarch -R true 2> /dev/null && echo "setarch -R" || true)

# caught PROGRAM NAME WORDS: a wrong call is caught. A sanitizer that is not there finds nothing either.
caught() {
  local said
  if said=$($still "$1" plant "$2" 2>&1) || ! grep -q "$3" <<< "$said"; then
    echo "$said"
    echo "sanitize.sh: the wrong call that $2 must catch was not caught" >&2
    exit 1
  fi
}

echo "sanitize.sh: addresses and undefined behaviour"
build_extension address -DRECURRA_SANITIZE=address,undefined -DRECURRA_CHECK=ON
check=build/address/cmake/check_kernels
caught $check address "AddressSanitizer: heap-buffer-overflow"
caught $check undefined "runtime error: load of value 2, which is not a valid value for type 'bool'"
$check 25
# Python itself leaves memory to the end of the process; tests/native/test_memory.py looks for leaks. Freed memory is
# kept back for a while, so that memory does not stay level.
for what in tests/builds/smoke.py "-m pytest -q -s -p no:cacheprovider -k not(stays_level) $kernel_tests"; do
  ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" \
    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" build/address/bin/python $what
done

echo "sanitize.sh: threads"
build_check thread -DRECURRA_SANITIZE=thread -DRECURRA_OPENMP=OFF
caught build/thread/check_kernels thread "WARNING: ThreadSanitizer: data race"
$still build/thread/check_kernels 10
