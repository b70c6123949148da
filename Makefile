# Everything runs inside one virtual environment, which the first target to need it makes, in two
# steps: the library with matplotlib is enough for `make demo`; all else adds the extras and tools.
PYTHON ?= python3
VENV ?= .venv
BIN_NAME := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(BIN_NAME)
PLOT_READY := $(VENV)/.plot-ready
READY := $(VENV)/.ready
# Tests run side by side; one thread each keeps two workers from fighting over two cores.
WORKERS ?= 2
# Without files of bytecode each program that a test starts compiles scikit-learn again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test tests coverage test-fast test-all test-oldest fuzz faults mutation peer-suites lint pages architecture dist bench large selection kilobytes tables formats docs exactness numerics clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(PLOT_READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nysplus needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[plot]"
	@touch $@

$(READY): $(PLOT_READY)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $@

demo: $(PLOT_READY)  ## models of kilobytes against SVC and boosting on digits: a table, a figure, C and a web page
	$(BIN)/python examples/demo.py

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)
# Neighbouring tests stay together, so that models and clusters that they share are made once; a worker
# that has finished takes over half of what is left to another.
TOGETHER := --dist worksteal

test: $(READY)  ## lint, types, tests, doctests and pages
	$(MAKE) --no-print-directory --jobs=2 lint tests

# beside lint, which keeps one core busy for a minute
tests: $(READY)
	$(PYTEST) $(TOGETHER)

# Coverage makes tests take half as long again. Left out are the thousands of small fits of scikit-learn's
# checks, programs that are killed, and tests of lines that others run as well.
CONTRACT := tests/api/test_contract_of_combinations.py
NOT_COVERED := tests/test_site.py tests/_rows/on_dask/test_fit.py tests/_rows/on_dask/test_lost_workers.py \
	tests/_rows/on_dask/test_workers.py tests/_runtime/checkpoints/test_going_on.py tests/api/test_stress.py \
	tests/cli/test_page.py tests/fuzz tests/injected tests/mutation tests/properties tests/test_readme.py \
	tests/nysplus_experiments src/nysplus_experiments tests/test_architecture.py tests/test_docstrings.py \
	tests/test_real_data.py tests/test_release.py tests/api/test_contract.py $(CONTRACT)
coverage: $(READY)  ## at least 97 % of lines and branches are covered: ten minutes
	$(PYTEST) $(TOGETHER) --cov --cov-report=term:skip-covered $(addprefix --ignore=,$(NOT_COVERED))

test-fast: $(READY)  ## what takes a minute: neither lint nor slow tests
	$(PYTEST) $(TOGETHER) --ignore=$(CONTRACT) -m "not slow and not all_combinations"

# 150 examples of every property instead of 10
THOROUGH := --hypothesis-profile=thorough
test-all: lint  ## everything, scikit-learn's checks of all combinations included: half an hour
	$(PYTEST) $(TOGETHER) -m "" $(THOROUGH)

mutation: $(READY)  ## 400 changes of the engine, of which tests must notice 85 %: about 20 minutes
	$(BIN)/python tests/mutation/check.py --workers $(WORKERS)

FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=
fuzz: $(READY)  ## search for files that crash, hang or take much memory: FUZZ_SECONDS=600 for each of FUZZ_TARGETS (all)
	-$(BIN)/python -m pip install --quiet --group fuzz
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

KILLS ?= 50
faults: $(READY)  ## kill saves, fits and reproductions at KILLS=50 random moments each: some minutes
	for scene in save fit reproduce; do \
		OMP_NUM_THREADS=1 $(BIN)/python tests/injected/kills.py $$scene --kills $(KILLS) || exit 1; \
	done

OLDEST := .venv-oldest
test-oldest: $(OLDEST)/.ready  ## the tests with the lowest versions that pyproject.toml allows
	OMP_NUM_THREADS=1 $(OLDEST)/$(BIN_NAME)/python -m pytest -n $(WORKERS) $(TOGETHER)

$(OLDEST)/.ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/$(BIN_NAME)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/$(BIN_NAME)/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[all]" --group dev
	@touch $@

peer-suites: $(READY)  ## scikit-learn's own tests with our classes in the place of its own: some minutes
	OMP_NUM_THREADS=1 $(BIN)/python tests/peers/peer_suites.py -n $(WORKERS) --dist loadfile

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

SITE := build/docs
docs: $(READY)  ## build the site with all examples: a few minutes; open build/docs/index.html
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs $(SITE)

pages: $(READY)  ## run the Python blocks of all pages, and follow their links within the repository
	$(BIN)/python -m pytest tests/test_readme.py

architecture: $(READY)  ## draw the picture of docs/background/architecture.md from the imports
	$(BIN)/python docs/background/draw_architecture.py

dist: $(READY)  ## build the wheel and the source distribution, install each alone and fit a model
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	for made in dist/*.whl dist/*.tar.gz; do \
		$(PYTHON) -m venv --clear .venv-dist && \
		.venv-dist/$(BIN_NAME)/python -m pip install --quiet $$made && \
		(cd dist && ../.venv-dist/$(BIN_NAME)/python -W error -c $(SMOKE)) || exit 1; \
	done

SMOKE := 'import nysplus, sklearn.datasets as d; X, y = d.load_digits(return_X_y=True); \
	model = nysplus.NystroemClassifier(50, random_state=0).fit(X, y); \
	print(nysplus.__version__, round(model.score(X, y), 2)); assert model.score(X, y) > 0.9'

exactness: $(READY)  ## compare with dense references and the reference figures (needs NYSPLUS_DATA)
	$(BIN)/nysplus bench speed exactness reference-figures

numerics: $(READY)  ## 500 problems against extended precision: two minutes; fills docs/background/numerics.md
	$(BIN)/nysplus bench numerics
	$(BIN)/nysplus bench pages numerics

bench: $(READY)  ## speed against the peers, an hour; fills docs/results/speed.md (needs NYSPLUS_DATA)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/nysplus bench speed peers crossover growth overhead sweep
	$(BIN)/nysplus bench pages speed

large: $(READY)  ## rows larger than memory, and a cluster: half an hour; fills docs/results/scale.md (needs NYSPLUS_DATA)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/nysplus bench scale
	$(BIN)/nysplus bench pages scale

selection: $(READY)  ## every landmark rule, widths, metric, calibration: an hour and a half; fills docs/results/selection.md (needs NYSPLUS_DATA)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/nysplus bench selection
	$(BIN)/nysplus bench pages selection

kilobytes: $(READY)  ## compact models against the peers: two hours; fills docs/results/kilobytes.md (needs NYSPLUS_DATA)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/nysplus bench kilobytes
	$(BIN)/nysplus bench pages kilobytes

tables: $(READY)  ## accuracy per byte on tables, eleven systems: many hours; fills docs/results/tables.md (needs NYSPLUS_DATA)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/nysplus bench tables
	$(BIN)/nysplus bench pages tables

formats: $(READY)  ## bytes and speed of exports, and compression: some minutes; fills docs/results/formats.md (needs NYSPLUS_DATA)
	$(BIN)/nysplus bench formats
	$(BIN)/nysplus bench pages formats

clean:  ## remove everything that was made, the environment included
	rm -rf docs/api/generated docs/gallery
	rm -rf $(VENV) .venv-oldest .venv-dist build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache
