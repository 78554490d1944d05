# `make demo` and `make test` are all that a new machine needs; both make .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV := build/uv/bin/uv

.PHONY: demo test test-long test-all test-lowest quick fuzz lint types layers docs lock hashes audit sbom wheel clean

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

# Take the newest versions that the ranges allow; with the SHA-256 sums of their files.
lock:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt
	$(MAKE) hashes

# `pip install --require-hashes -r requirements.lock`, then `pip install --no-deps .`, takes these alone.
hashes: $(UV)
	$(UV) pip compile pyproject.toml --extra train --extra serve --extra export -c constraints.txt \
		--python-version 3.11.9 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--quiet -o requirements.lock

# The tests that need no extra but `train` and `serve`, with the lowest versions that the ranges allow.
test-lowest: $(UV)
	rm -rf build/lowest
	$(PYTHON) -m venv build/lowest
	$(UV) pip compile pyproject.toml --extra train --extra serve --resolution lowest-direct \
		--no-emit-index-url --quiet -o build/lowest.txt
	$(UV) pip install --quiet --python build/lowest/bin/python -r build/lowest.txt \
		pytest pytest-timeout hypothesis
	PYTHONPATH=src OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -m "not slow and not long" \
		-W ignore::DeprecationWarning tests/core tests/data tests/tables tests/images tests/config \
		tests/runs tests/classic tests/methods

# What is known of holes in the locked versions; needs a network. Without --strict, pip-audit calls
# packages safe that its database could not be asked about.
audit: requirements.lock
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit
	build/audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock || \
		{ echo "make audit: a package has a known hole, or could not be asked about; see above" >&2; exit 1; }

# A bill of materials in the form of CycloneDX, build/sbom.json.
sbom: requirements.lock
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet cyclonedx-bom
	build/sbom/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
		--of JSON -o build/sbom.json

$(UV):
	$(PYTHON) -m venv build/uv
	build/uv/bin/python -m pip install --quiet uv

wheel: $(READY)
	$(BIN)/python -m pip wheel --no-deps --no-build-isolation -w dist .

clean:
	rm -rf $(VENV) runs dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
