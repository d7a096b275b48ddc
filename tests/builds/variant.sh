# For the scripts beside this one: other builds of the kernels, each in a folder of build/ of its own.
# BIN is the folder of a Python that has what the tests need (make sets it).
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(cd "${BIN:-.venv/bin}" && pwd)
export PATH="$bin:$PATH" CMAKE_GENERATOR=Ninja

# build_check NAME [CMAKE OPTION...]: check_kernels, which needs no Python, in build/NAME.
build_check() {
  cmake -S . -B "build/$1" --log-level=WARNING -DRECURRA_EXTENSION=OFF -DRECURRA_CHECK=ON "${@:2}" > "build/$1.log"
  cmake --build "build/$1" -- --quiet
}

# build_extension NAME [CMAKE OPTION...]: a virtual environment in build/NAME with the extension built so, and all else
# from $bin's. A folder on a path of another environment is not searched for further paths: its own recurra stays unseen.
build_extension() {
  local site
  "$bin/python" -m venv --without-pip "build/$1"
  site=$("build/$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$bin/python" -c 'import sys; print(*(p for p in sys.path if p.endswith("site-packages")), sep="\n")' > "$site/base.pth"
  SKBUILD_BUILD_DIR="build/$1/cmake" CMAKE_ARGS="${*:2}" "$bin/python" -m pip --quiet --python "build/$1/bin/python" \
    install --no-build-isolation --no-deps .
  "build/$1/bin/python" -c "import importlib.util as i; f = i.find_spec('recurra').origin; assert '/build/$1/' in f, f"
}

# needs PROGRAM...: in CI it must be there; elsewhere the script ends with a word of what to install.
needs() {
  local program
  for program in "$@"; do
    command -v "$program" > /dev/null && continue
    echo "$(basename "$0"): needs $program, which is not installed" >&2
    [ "${RECURRA_CI:-}" = 1 ] && exit 1
    echo "$(basename "$0"): skipped" >&2
    exit 0
  done
}

# The tests of the native kernels that take a short time.
kernel_tests="tests/native/test_kernels.py $(ls -d tests/stream 2> /dev/null || true)"
