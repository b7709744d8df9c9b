# Everything a fresh machine with make and Python 3.11, 3.12 or 3.13 needs. Each target creates the environment when it
# is missing. `make test PYTHON=python3.13` works in an environment of its own, .venv-3.13.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
ifeq ($(origin PYTHON), file)
VENV := .venv
else
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
BIN := $(VENV)/bin
RESULTS ?= results
SCALE ?= quick
# one thread per process: sweeps have threads of their own, tests and seeds have processes
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export NPROC := 1

.PHONY: help chromium reproduce test test-slow lint bench learning docs tutorials clean

help:
	@echo "make reproduce   run the experiments and write the report; SCALE=quick, medium or paper"
	@echo "make test        lint, types, import directions, tests"
	@echo "make test-slow   long statistical and large-model checks"
	@echo "make docs        build the site into build/site; it opens from disk, without a network"
	@echo "make tutorials   run the tutorials again and write their pages and notebooks; takes minutes"
	@echo "make bench       compare with the non-robust solvers of PyPI and write docs/benchmarks.md"
	@echo "make learning    train DQN and Stable-Baselines3's and write their section of docs/benchmarks.md; takes hours"

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.ray: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,ray]"
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,bench]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --requirement benchmarks/peers.txt
	@touch $@

reproduce: $(VENV)/.dev
	$(BIN)/urbe reproduce --scale $(SCALE) --output $(RESULTS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

chromium:
	@tests/browser/install_chromium

# a file's tests in one process, so that what they compile is compiled once
test: lint chromium
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: $(VENV)/.ray chromium
	$(BIN)/python -m pytest -n 2 -m slow
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "hypothesis and not slow" tests
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=interpreted $(BIN)/python -m pytest -n 2 -q -m "not slow" tests/ambiguity/test_l1.py tests/ambiguity/test_contract.py tests/ambiguity/test_scenarios.py tests/ambiguity/test_contamination.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.compare --write docs/benchmarks.md

learning: $(VENV)/.bench
	$(BIN)/python -m benchmarks.learning --cells $(RESULTS)/learning --write docs/benchmarks.md

docs: $(VENV)/.dev
	$(BIN)/python docs/site/build.py

tutorials: $(VENV)/.dev
	$(BIN)/python docs/site/tutorials.py

clean:
	rm -rf build .venv .venv-* $(RESULTS) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
