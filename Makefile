# Each target sets up what it needs in $(VENV), once per content of pyproject.toml.
#   make demo            simulate and fit something real; writes physkit-demo/
#   make test            the fast test suite      make test-all   the slow cases, too
#   make test-slurm      a real Slurm on this machine, started and stopped (as root: installs it)
#   make mutants         seeded faults, one by one: do the tests see them?
#   make hunt            2 000 drawn compositions against plain NumPy: is anything silently wrong?
#   make validate        published numbers, computed here
#   make bench           speed beside other codes
#   make gpu             tests, published numbers and speed on this machine's NVIDIA GPU (GPU=cuda13: newer drivers)
#   make gpu-check       without a GPU: programs compiled for an H100, their launches counted
#   make lint            style and types          make docs       HTML into site/
#   make gallery         every example run, its picture drawn again; some 40 minutes
#   make package         wheel and sdist, installed in a fresh environment and looked at
#   make clean           remove environment and outputs
# Another interpreter or environment: make test PYTHON=python3.12 VENV=.venv312

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= auto
# JAX for GPUs gets an environment of its own: on a CPU it would warn in every process.
GPU ?= cuda12
GPU_VENV ?= .venv-gpu

RUN := $(VENV)/bin/python
STAMP := $(shell cksum < pyproject.toml | cut -d ' ' -f 1)
has = $(VENV)/.has-$(1)-$(STAMP)

.PHONY: demo test test-all test-slurm hunt mutants validate bench gpu gpu-check gpu-report gpu-count lint format docs gallery package clean
.DELETE_ON_ERROR:

demo: $(call has,core)
	$(RUN) -m physkit demo

test: $(call has,test)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal

# Programs as users compile and run them, but for those that compile for minutes. The fast suite has few
# optimizations, and checks annotations at every call, which takes up to as long as all the rest of a traced program.
test-all: export PHYSKIT_TYPECHECK ?= 0
test-all: $(call has,test)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal -m compiled_quickly
	PHYSKIT_TEST_OPTIMIZED=1 $(RUN) -m pytest -n $(WORKERS) --dist worksteal -m "not compiled_quickly"

# The cluster first: without it there is nothing to set up for.
test-slurm:
	@sh tests/slurm/cluster.sh install
	@$(MAKE) --no-print-directory $(call has,test) $(call has,cluster)
	PHYSKIT_SLURM=1 $(RUN) -m pytest tests/slurm -m "" -n 0

hunt: $(call has,test)
	$(RUN) -m tests.hunt 0 2000

mutants: $(call has,test)
	$(RUN) -m tests.mutants

validate: $(call has,core)
	$(RUN) -m physkit validate

bench: $(call has,bench)
	$(RUN) -m benchmarks

gpu:
	@$(MAKE) --no-print-directory VENV=$(GPU_VENV) gpu-report

gpu-report gpu-count: export PHYSKIT_TEST_OPTIMIZED := 1

gpu-report: $(call has,test) $(call has,$(GPU)) $(call has,bench-gpu)
	$(RUN) -m benchmarks.gpu.report

gpu-check:
	@$(MAKE) --no-print-directory VENV=$(GPU_VENV)-check gpu-count

gpu-count: $(call has,test) $(call has,gpu-check)
	$(RUN) -m pytest tests/gpu -m "" -n 0

lint: $(call has,dev)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m pyright --level error --pythonpath $(RUN)

format: $(call has,dev)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

docs: $(call has,docs)
	$(RUN) -m sphinx -W --keep-going -q -d .cache/doctrees docs site
	@echo "the documentation is in site/index.html"

gallery: $(call has,docs) $(call has,learn) $(call has,md)
	$(RUN) docs/_site/draw.py

package: $(call has,core) $(call has,package)
	$(RUN) -m tests.package

clean:
	rm -rf $(VENV) $(GPU_VENV) $(GPU_VENV)-check site build dist physkit-demo .ruff_cache .hypothesis .cache

$(RUN):
	@command -v $(PYTHON) > /dev/null || { \
	  echo "physkit needs Python 3.11 or newer; there is no $(PYTHON). Name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "physkit needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"; exit 1; }

# Peers come one by one: a code without a wheel for this machine is left out, not fatal.
$(VENV)/.has-bench-$(STAMP) $(VENV)/.has-bench-gpu-$(STAMP): $(VENV)/.has-%-$(STAMP): $(VENV)/.has-core-$(STAMP)
	@for peer in $$($(RUN) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"])'); do \
	  $(RUN) -m pip install --quiet --disable-pip-version-check --prefer-binary $$peer \
	    || echo "$$peer cannot be installed here: the benchmarks do without it"; done
	@touch $@

$(VENV)/.has-%-$(STAMP): | $(RUN)
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.$(if $(filter core,$*),,[$*])'
	@touch $@
