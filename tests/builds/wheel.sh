#!/usr/bin/env bash
# One wheel for every Python from 3.10 on: it asks only for what they all have, and works on those that are at hand,
# python3.10 and later on the PATH, and those that PYTHONS names.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/variant.sh"

rm -rf dist build/wheel
SECONDS=0
"$bin/python" -m pip --quiet wheel --no-build-isolation --no-deps --wheel-dir dist --config-settings build-dir=build/wheel/cmake .
wheel=$(echo dist/*.whl)
[[ $wheel =~ ^dist/recurra-[0-9.]+-cp310-abi3-[a-z0-9_]+\.whl$ ]] || { echo "wheel: not the one expected: $wheel" >&2; exit 1; }
echo "wheel: $wheel, $(($(stat -c %s "$wheel") / 1024)) KiB, built in $SECONDS s"
abi3audit --strict "$wheel"

for python in $(for v in 3.10 3.11 3.12 3.13 3.14; do command -v python$v || true; done) ${PYTHONS:-}; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) || continue
  [ ! -d "build/wheel/$version" ] || continue
  "$python" -m venv "build/wheel/$version"
  "build/wheel/$version/bin/python" -m pip --quiet install "$wheel"
  # Not from here: the source tree is no part of it.
  (cd build/wheel && "$version/bin/python" -W error ../../tests/builds/smoke.py)
done
