# All targets for developers; `make` lists them. Each step prints one line, and its output only if it
# fails. Stamp files in .venv and .tools keep finished steps from being repeated.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup setup-test study test test-all test-faults lint build wheels site release-check clean packages

VENV := .venv
BIN := $(VENV)/bin
# Two processes: while one waits, the other computes (docs/decisions/0033-two-test-processes.md).
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
CORE_SOURCES := Cargo.toml Cargo.lock $(shell find crates)

# The environment into which maturin installs, and whose Python PyO3 builds for.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \t\2/p' Makefile | expand -t 24

setup: $(VENV)/.core ## Create .venv and build Tonnage into it.
	@echo "Ready: $(BIN)/tonnage --help"

setup-test: packages $(VENV)/.core $(VENV)/.dev .tools/hadoop/.complete .tools/skypilot/.complete ## Set up Tonnage and what the tests need, such as Chromium and Hadoop.

study: $(VENV)/.core ## Set up, then measure this machine, predict a sort, run it and write a report.
	@$(BIN)/tonnage study

test: setup-test lint ## Set up, then lint and run the fast tests: ten minutes once set up.
	@tools/step "Testing the Rust core" cargo test --profile tests --locked --workspace
	@echo "Testing Tonnage"
	@$(PYTEST) -m "not slow or real" --durations=15

test-all: setup-test lint ## Set up, then lint and run all tests: an hour at most.
	@tools/step "Testing the Rust core" cargo test --profile tests --locked --workspace
	@echo "Testing Tonnage"
	@$(PYTEST) --hypothesis-profile=new --durations=50

test-faults: setup-test ## Run 100 seeded fault cases for each kind of cluster job (needs root).
	@TONNAGE_FAULT_SEEDS=0:100 $(BIN)/python -m pytest -s tests/e2e/faults/test_sort_matrix.py
	@TONNAGE_REDUCE_SEEDS=0:100 $(BIN)/python -m pytest tests/run/reduce/cluster/test_faults.py tests/run/reduce/cluster/test_cluster.py

lint: $(VENV)/.core $(VENV)/.dev ## Check formatting, lints, types, and the project's own rules.
	@tools/step "Checking Rust's formatting" cargo fmt --all --check
	@tools/step "Checking Rust's lints" cargo clippy --locked --workspace --all-targets -- -D warnings
	@tools/step "Checking Python's formatting" $(BIN)/ruff format --check
	@tools/step "Checking Python's lints" $(BIN)/ruff check
	@tools/step "Checking Python's types" $(BIN)/mypy
	@tools/step "Checking layout, names and words" $(BIN)/python -m pytest -q tools/house

build: $(VENV)/.runtime ## Build the wheel, into target/wheels.
	@tools/step "Building the wheel" $(BIN)/maturin build

wheels: $(VENV)/.runtime $(VENV)/.wheels ## Build wheels for all platforms, into target/dist (needs rustup).
	@$(BIN)/python tools/wheels

site: $(VENV)/.core $(VENV)/.dev ## Build the documentation as HTML pages, into target/site.
	@$(BIN)/python tools/site target/site

release-check: $(VENV)/.core $(VENV)/.dev ## Run the release checklist: versions, wheel, sdist.
	@$(BIN)/python tools/release-check

clean: ## Remove everything that make created, except studies.
	@rm -rf target .venv .tools .hypothesis .pytest_cache .mypy_cache .ruff_cache
	@find python tests -name __pycache__ -prune -exec rm -rf {} +
	@rm -f python/tonnage/*.so

$(BIN)/python:
	@python=$$(tools/find-python) && tools/step "Making .venv with $$python" "$$python" -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.txt | $(BIN)/python
	@tools/step "Installing Tonnage's dependencies" $(BIN)/python -m pip install --require-hashes -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	@tools/step "Installing the tests' dependencies" $(BIN)/python -m pip install --require-hashes -r $<
	@touch $@

$(VENV)/.wheels: requirements/wheels.txt $(VENV)/.runtime
	@tools/step "Installing zig" $(BIN)/python -m pip install --require-hashes -r $<
	@touch $@

# Built into python/tonnage, so changes to Python need no rebuild.
$(VENV)/.core: $(CORE_SOURCES) pyproject.toml $(VENV)/.runtime
	@command -v cargo >/dev/null || { echo "Rust 1.88 or later is needed: install cargo and rustc" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "A linker is needed: apt-get install gcc libc6-dev" >&2; exit 1; }
	@tools/step "Building Tonnage" $(BIN)/maturin develop
	@touch $@

packages:
	@tools/setup-tests

.tools/hadoop/.complete: tests/support/hadoop/judge/pom.xml tests/support/hadoop/judge/jars.sha256 | packages
	@rm -rf $(@D)
	@tools/step "Fetching Hadoop's jars" mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@cd $(@D) && sha256sum --check --quiet --strict $(CURDIR)/tests/support/hadoop/judge/jars.sha256
	@touch $@

# In a separate environment: SkyPilot needs other versions of Tonnage's dependencies.
.tools/skypilot/.complete: requirements/skypilot.txt | $(BIN)/python
	@rm -rf $(@D)
	@$(BIN)/python -m venv --without-pip $(@D)
	@tools/step "Installing SkyPilot" $(BIN)/python -m pip --python $(@D)/bin/python install --no-compile --require-hashes -r $<
	@touch $@
