# Two commands: `make train` trains a model to orchestrate, `make test` runs the tests.
PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.PHONY: train test setup lint types clean

train: setup
	$(BIN)/stretto train recipes/quickstart.toml $(ARGS)

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,dev]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/basedpyright

clean:
	rm -rf $(VENV) runs
