# demo      forecasts a CO2 record; needs Python 3.10+ with venv, a C++ compiler and make
# test      runs the tests                      make test PYTEST_ARGS='-k lstm -x'
# check     formatting, lint, types and docs, as CI runs them
# sanitize  the kernels under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
# clang     builds with clang, warnings as errors and threads of our own, and runs the kernel tests on that
# arm64     builds for 64-bit Arm with a cross compiler, and checks the kernels in an emulator
# wheel     makes the wheel in dist/, and checks it for every Python that it is for
# bench     runs the benchmarks                 make bench BENCH_ARGS='--quick --op lstm'
# docs      builds the pages into site/
# format    rewrites the sources in the house format
# clean     removes everything that the above made, .venv included
#
# All of it lives in .venv, made with PYTHON. After a change of PYTHON: make clean.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet
# What build-system.requires of pyproject.toml says (pip compares), and the two programs that it drives.
BUILD_TOOLS := 'scikit-build-core>=1.1,<2' 'nanobind>=3.1,<4' cmake ninja
CPP := $(wildcard csrc/*.cpp csrc/*.h src/recurra/kernels/*.h src/recurra/ops/*/*.h)
CPP_OTHER := benchmarks/ceiling.cpp tests/native/check_kernels.cpp tests/native/check_calls.h

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
# No package that another environment lends may hide one that an install forgot.
unexport PYTHONPATH PYTHONHOME

.DELETE_ON_ERROR:
.PHONY: demo test check sanitize clang arm64 wheel bench docs format clean

demo: $(VENV)/.with-plot
	$(BIN)/python examples/forecast_co2.py

# More than eight workers cost more memory, each with its own torch and jax, than they save time.
test: $(VENV)/.with-test
	$(BIN)/python -m pytest -n auto --maxprocesses 8 $(PYTEST_ARGS)

check: $(VENV)/.with-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP) $(CPP_OTHER)
	$(BIN)/mkdocs build --quiet --strict

sanitize: $(VENV)/.with-test
	BIN=$(BIN) tests/builds/sanitize.sh

clang: $(VENV)/.with-test
	BIN=$(BIN) tests/builds/clang.sh

arm64: $(VENV)/.with-test
	BIN=$(BIN) tests/builds/arm64.sh

wheel: $(VENV)/.with-dev
	BIN=$(BIN) tests/builds/wheel.sh

bench: $(VENV)/.with-test
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

docs: $(VENV)/.with-dev
	$(BIN)/mkdocs build --strict

format: $(VENV)/.with-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CPP) $(CPP_OTHER)

clean:
	rm -rf $(VENV) build dist site demo-output .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "recurra needs Python 3.10 or newer: make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

# One stamp for each extra. Editable, so that a changed .py file needs no install; a changed build or C++ file does.
# Whichever extra is installed last builds the one extension that all of them use. Built with the tools of .venv, not in
# pip's throw-away environment, where every build would start from nothing.
$(VENV)/.with-%: $(VENV)/.made pyproject.toml CMakeLists.txt $(CPP)
	$(PIP) install $(BUILD_TOOLS)
	$(PIP) install --no-build-isolation --check-build-dependencies --editable '.[$*]'
	touch $@
