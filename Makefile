# Everything is installed into .venv. PYTHON is any Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
# What is never imported need not be compiled: that halves the time of an installation.
INSTALL := -m pip install --quiet --no-compile --disable-pip-version-check
PIP := $(BIN)/python $(INSTALL)
# Instead, Python keeps what it compiles when it is imported, whatever the environment says: tests start a hundred interpreters.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: reproduce test test-slow coverage test-oldest test-wheel test-sdist kernels lint references graph bench kills mutations docs clean

# The paper's experiments at a size of two minutes. DATA is a directory with LIBSVM files (optional).
DATA ?=
reproduce: .venv/.paper
	$(BIN)/adagrad-diff reproduce --resume $(if $(DATA),--data $(DATA))

# Kernels are compiled once, by all cores, before the workers begin: otherwise each worker would compile all of them. Each worker
# takes its part of the list, in order, and steals from the other at the end, so tests of one file share what they compute.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal -p no:logging
COMPILE := $(BIN)/python -m compileall -q src && $(BIN)/python tests/cases/compiling.py
test: .venv/.dev
	$(COMPILE)
	$(PYTEST) -m "not slow" $(TESTS)

# The rest: clusters, browsers, kills, other environments.
test-slow: .venv/.dev
	$(COMPILE)
	$(PYTEST) -m slow $(TESTS)
	$(MAKE) -j 2 test-wheel test-oldest

# Branch coverage of both tiers: make coverage TESTS=tests/losses for a part.
coverage: .venv/.dev
	$(COMPILE)
	$(PYTEST) --cov=adagrad_diff --cov-branch --cov-report=term:skip-covered $(TESTS)

# Those of the core, which needs nothing but itself. Numba tells functions that were read from a .pyc from those that were just
# compiled, and would not find their kernels: so all of them are read from there.
kernels: .venv/.core
	$(BIN)/python -m compileall -q src
	$(BIN)/python tests/cases/compiling.py losses walks rules penalties

# The oldest supported NumPy, SciPy and Numba, and nothing else: kernels compile, and data, files and errors are handled as with the
# newest. Whether the mathematics is right does not depend on versions.
OLDEST := test_extras linalg/test_loss_data losses/test_accuracy losses/test_loss_inputs solvers/test_bad_input \
	solvers/test_scipy_bridge solvers/test_state_files test_dependencies
test-oldest: .venv-oldest/.ready
	.venv-oldest/bin/python -m pytest -q -n auto --dist worksteal -m "not peer" $(wildcard $(OLDEST:%=tests/%.py) tests/datasets_)

# The wheel, installed alone into an empty environment, must import, solve and be typed.
test-wheel: .venv/.dev
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --quiet --no-isolation --wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(INSTALL) dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/wheel_check.py

# The source archive has all that its tests need: some of them are run from it, elsewhere.
SDIST := test_showing test_documents test_names datasets_/test_inside losses/test_losses
test-sdist: .venv/.dev
	rm -rf dist/sdist dist/*.tar.gz
	$(BIN)/python -m build --quiet --no-isolation --sdist
	mkdir -p dist/sdist && tar -xzf dist/*.tar.gz -C dist/sdist --strip-components=1
	cd dist/sdist && PYTHONPATH=src ../../$(BIN)/python -m pytest -q -p no:cacheprovider $(SDIST:%=tests/%.py)

lint: .venv/.dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# Compare this checkout with the results of the code before the refactoring; see tools/references.py.
references: .venv/.dev
	PYTHONPATH=src $(BIN)/python tools/references.py

# Which package depends on which, read from the code: a table, and docs/graph.svg.
graph:
	$(PYTHON) tools/graph.py

# One command prints the tables: all of them, or make bench ONLY=core.
bench: .venv/.bench
	$(BIN)/python -m benchmarks $(ONLY)

# Fifty deliberate bugs (tools/mutation_catalogue.py): how many of them do the tests detect?
mutations: .venv/.dev
	$(COMPILE)
	$(BIN)/python tools/mutations.py $(ONLY)

# A hundred kills at random moments: what was killed goes on, bit for bit.
kills: .venv/.dev
	$(BIN)/python tests/kill_check.py

# The site, built without any network but that of pip. A warning, a broken link or an undocumented public name fails it.
docs: .venv/.docs
	$(BIN)/sphinx-build -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo "The documentation is docs/_build/html/index.html: open it in a browser."

clean:
	rm -rf .venv .venv-oldest .venv-wheel dist results docs/_build docs/gallery docs/reference/generated docs/sg_execution_times.rst

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/.paper: pyproject.toml | .venv/bin/python
	$(PIP) -e '.[paper]'
	touch $@

.venv/.core: pyproject.toml requirements/dev.txt | .venv/bin/python
	$(PIP) -c requirements/dev.txt -e .
	touch $@

.venv/.dev: .venv/.core
	$(PIP) -r requirements/dev.txt
	touch $@

# With the versions that the tests have.
.venv/.docs: .venv/.dev requirements/docs.txt
	$(PIP) -r requirements/docs.txt
	touch $@

.venv/.bench: pyproject.toml requirements/bench.txt requirements/dev.txt | .venv/bin/python
	$(PIP) -r requirements/bench.txt -e .
	touch $@

.venv-oldest/.ready: pyproject.toml requirements/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(INSTALL) -r requirements/oldest.txt -e .
	touch $@
