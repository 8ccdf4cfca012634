.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
SOURCES := pyproject.toml tools/setup
DEV := .venv/.dev
# Whoever has set up for development needs nothing more to run.
RUN := $(if $(wildcard $(DEV)),$(DEV),.venv/.run)
COMPILE := PATH="$(CURDIR)/$(BIN):$$PATH" uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url \
	--no-emit-find-links --custom-compile-command "make lock"

.PHONY: help run demo test check lint types imports style bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: $(RUN) ## start everything, with servers of its own unless REDIS_URL and DATABASE_URL are set
	@$(BIN)/knockon up

demo: $(RUN) ## publish example events, wait for their runs and show them
	@$(BIN)/knockon demo

test: $(DEV) ## run all tests, on real servers
	@$(BIN)/python -m pytest -n auto --dist worksteal tests

check: lint types imports style ## check style, types and layers

lint: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV)
	@$(BIN)/mypy

imports: $(DEV)
	@$(BIN)/lint-imports --no-logo

style: $(DEV)
	@$(BIN)/python tools/check_style.py

bench: $(DEV) ## measure throughput and latency
	@$(BIN)/python -m benchmarks

lock: $(DEV) ## write the lock files anew from pyproject.toml
	@$(COMPILE) --upgrade --group dev pyproject.toml -o requirements.lock
	@$(COMPILE) --constraint requirements.lock pyproject.toml -o requirements-run.lock

clean: ## remove what was built and cached; the data folder stays
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEV): requirements.lock $(SOURCES)
	@tools/setup requirements.lock
	@touch $@

.venv/.run: requirements-run.lock $(SOURCES)
	@tools/setup requirements-run.lock
	@touch $@
