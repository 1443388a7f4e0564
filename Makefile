# The newest Python that is known to work and can make a virtual environment; `make PYTHON=… test` overrides.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n 2 --dist loadfile
UV_VERSION := 0.13.7
COMPILE := $(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help demo test check matrix crash prove chaos soak bench bench-writers scale pictures docs cover format lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s%s\n", $$1, $$2 }'

demo: $(VENV)/run.stamp  ## see it work: a small shop and its dashboard, on a SQLite file (ARGS=… passes options)
	@$(BIN)/drumline demo $(ARGS)

test: $(VENV)/dev.stamp  ## run the tests (ARGS=… passes options to pytest)
	$(PYTEST) $(PARALLEL) -m "not prove and not crash" --ignore=tests/house $(ARGS)

check: $(VENV)/dev.stamp  ## format, lint, types and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
ifneq ($(wildcard tests/types/*.py),)
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --warnings
else
	@echo "pyright: nothing to check, there are no type tests in tests/types yet"
endif
	$(PYTEST) $(PARALLEL) tests/house

matrix: $(VENV)/dev.stamp  ## run the suite on other servers (ARGS=… passes options to pytest)
	@$(BIN)/python -m tests.matrix $(ARGS)

crash: $(VENV)/dev.stamp  ## kill a process at every named place on every store, and try stores that are broken on purpose
	$(PYTEST) $(PARALLEL) -m crash $(ARGS)

prove: $(VENV)/dev.stamp  ## run the long proofs of the promises
	$(PYTEST) -m prove $(ARGS) || { [ $$? -eq 5 ] && echo "prove: no test is marked prove yet"; }

chaos: $(VENV)/dev.stamp  ## kill, freeze and cut off a fleet on every store (MINUTES=2 SEED=… STORE=sqlite,postgres,redis)
	@$(BIN)/python -m tests.chaos

soak: $(VENV)/dev.stamp  ## see that nothing grows under a steady load (MINUTES=10 STORE=sqlite,postgres,redis)
	@$(BIN)/python -m tests.soak

bench: $(VENV)/dev.stamp  ## measure beside bare engines and other systems (ARGS="--store redis --peer arq --jobs 2000 --rounds 1")
	@$(BIN)/python -m benchmarks $(ARGS)

scale: $(VENV)/dev.stamp  ## time every page of the dashboard with two million jobs on Postgres (ARGS="--jobs 100000")
	@$(BIN)/python -m benchmarks.scale $(ARGS)

pictures: $(VENV)/dev.stamp  ## take a picture of every page of the dashboard, from the demo
	@$(BIN)/python -m tests.browser.pictures docs/pictures

bench-writers: $(VENV)/dev.stamp  ## measure what hints cost 32 writers on a private Postgres (ARGS="--pairs 8 --seconds 3")
	@$(BIN)/python -m benchmarks.writers $(ARGS)

docs: $(VENV)/docs.stamp  ## make the site of the docs in site/, and check every link
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean --config-file website/mkdocs.yml
	@$(BIN)/python -m website.offline site

cover: $(VENV)/dev.stamp  ## hold model and policy at full coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not prove" tests/model tests/policy
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='src/drumline/model/*,src/drumline/policy/*' --fail-under=100

format: $(VENV)/dev.stamp  ## format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(BIN)/pip  ## pin the newest allowed dependencies in requirements/*.txt
	$(PIP) install uv==$(UV_VERSION)
	$(COMPILE) --output-file requirements/run.txt pyproject.toml requirements/run.in --extra web
	$(COMPILE) --output-file requirements/dev.txt pyproject.toml requirements/dev.in \
		--all-extras --constraint requirements/run.txt
	$(COMPILE) --output-file requirements/docs.txt pyproject.toml requirements/docs.in \
		--extra web --constraint requirements/dev.txt

clean:  ## remove everything that make has made
	rm -rf $(VENV) .bench-* dist site .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests examples website -name __pycache__ -prune -exec rm -rf {} +

# Pip comes last into a new environment, so that its presence tells a whole one from a broken start.
$(BIN)/pip:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Drumline needs Python 3.11 or newer with venv: install one, or name it with make PYTHON=…"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)

# The stamp makes a second run start at once, until the pins or the package's own metadata change.
$(VENV)/%.stamp: requirements/%.txt pyproject.toml | $(BIN)/pip
	@echo "installing $<"
	@$(PIP) install --require-hashes -r $<
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
