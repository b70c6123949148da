# Everything runs inside one virtual environment that the first target to need it creates.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests run side by side; one thread each keeps two workers from fighting over two cores.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench large selection kilobytes formats docs exactness clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "nysplus needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	@touch $@

demo: $(READY)  ## train four kinds of landmarks on scikit-learn's digits: a table and a figure
	$(BIN)/python examples/digits_by_size.py

test: lint  ## lint, types, tests, doctests, README
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --durations=5

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

exactness: $(READY)  ## compare with dense references and the reference figures (needs NYSPLUS_DATA)
	$(BIN)/nysplus bench speed exactness reference-figures

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

formats: $(READY)  ## bytes and speed of exports, and compression: some minutes; fills docs/results/formats.md (needs NYSPLUS_DATA)
	$(BIN)/nysplus bench formats
	$(BIN)/nysplus bench pages formats

docs: $(READY)  ## the web pages: not written yet
	@echo "There are no web pages yet; read docs/*.md and the docstrings."

clean:  ## remove everything that was made, the environment included
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
