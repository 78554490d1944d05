# `make demo` and `make test` are all that a new machine needs; both make .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-long test-all test-lowest quick fuzz lint types layers docs lock sbom wheel clean

demo: $(READY)
	$(BIN)/concont demo

test: lint types layers
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal -m "not long"

# What `make test` leaves out.
test-long: $(READY)
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist worksteal -m long

test-all: test test-long

# Damaged and hostile files for every reader: fixed cases, and some of a seed that it prints.
fuzz: $(READY)
	PYTHONPATH=src:tests $(BIN)/python tests/fuzz.py

quick: $(READY)
	$(BIN)/pytest -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

# The site, in build/docs/index.html; warnings are errors.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

# The environment: ranges from pyproject.toml, versions from constraints.txt.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "concont needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

# Take the newest versions that the ranges allow.
lock:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

wheel: $(READY)
	$(BIN)/python -m pip wheel --no-deps --no-build-isolation -w dist .

clean:
	rm -rf $(VENV) runs dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
