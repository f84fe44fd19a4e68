# coderet: `make repro` makes everything, from an empty machine to eval/report.html; `make test` checks everything.
PYTHON ?= python3
PRESET ?=
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
HOME_OF_PRESET := $(if $(PRESET),presets/$(PRESET),.)
READY := $(VENV)/.ready
VLLM := $(CURDIR)/.vllm
HAS_GPU := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU && echo yes)
VLLM_PINS := env/vllm$(if $(HAS_GPU),-gpu).txt
GENERATOR ?= smollm2
PORT ?= 8000
export PATH := $(BIN):$(PATH)
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true

.PHONY: repro data batch-size env selfcheck docs test lint ui log card push finetune bench vllm clean-work help

help:            ## What there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

repro: $(READY)  ## Fetch, mine, train, index, search, score, compare, log (PRESET=full for the big grid)
	@sed -n 's/^expected_minutes: *\([0-9]*\).*/On two cores this takes about \1 minutes the first time./p' $(HOME_OF_PRESET)/params.yaml
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/check.py && dvc repro
	@$(MAKE) --no-print-directory log
	@echo "The report: $(HOME_OF_PRESET)/eval/report.html, or: make ui"

log: $(READY)    ## Copy what is not yet there into MLflow
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/log.py

data: $(READY)   ## Find or fetch the files of a benchmark, and say what is missing: make data BENCHMARK=odex
	@test -n "$(BENCHMARK)" || { echo "which? make data BENCHMARK=<a name under benchmarks in $(HOME_OF_PRESET)/params.yaml>" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/gather.py $(BENCHMARK)

batch-size: $(READY)  ## Try how large a mini-batch this machine takes: make batch-size RETRIEVER=nbow
	@test -n "$(RETRIEVER)" || { echo "which? make batch-size RETRIEVER=<a name in grid.trained of $(HOME_OF_PRESET)/params.yaml>" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && python $(CURDIR)/train/batch_size.py $(RETRIEVER)

env:             ## An environment that a benchmark's answers run in, .venv-<name>: make env ENV=odex
	@test -f "env/$(ENV).txt" || { echo "which? make env ENV=<one of: $(basename $(notdir $(wildcard env/*.txt)))>" >&2; exit 2; }
	test -x .venv-$(ENV)/bin/python || $(PYTHON) -m venv .venv-$(ENV)
	.venv-$(ENV)/bin/python -m pip install --quiet --only-binary :all: --requirement env/$(ENV).txt

selfcheck: $(READY)  ## A benchmark's own answers through its judge: make selfcheck BENCHMARK=odex-devdocs [SET=<one of its sets>] [EVERY=<nth problem only>]
	@test -n "$(BENCHMARK)" || { echo "which? make selfcheck BENCHMARK=<a benchmark that was collected and poses problems>" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/selfcheck.py $(BENCHMARK) "$(SET)" "$(EVERY)"

docs: $(READY)   ## Write docs/benchmarks.md from the records of the benchmarks
	python docs/generate.py

card: $(READY)   ## The model card of a trained retriever, scores included: make card RETRIEVER=nbow
	@test -n "$(RETRIEVER)" || { echo "which? make card RETRIEVER=<a name under grid.trained in $(HOME_OF_PRESET)/params.yaml>" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/card.py $(RETRIEVER)

push: $(READY)   ## A trained encoder and its card to a hub, private, with HF_TOKEN: make push RETRIEVER=nbow REPO=me/nbow
	@test -n "$(RETRIEVER)" -a -n "$(REPO)" || { echo "which, and where to? make push RETRIEVER=<a name under grid.trained> REPO=<owner>/<name>" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && python $(CURDIR)/eval/push.py $(RETRIEVER) $(REPO)

finetune: $(READY)  ## Your own pairs to a scored, registered model: make finetune BASE=minilm PAIRS=pairs.jsonl NAME=mine
	@test -n "$(BASE)" -a -n "$(PAIRS)" || { echo "make finetune BASE=<a model folder, a hub's <owner>/<id>[@revision], or a retriever of params.yaml> PAIRS=<.jsonl or .parquet> [NAME=<of the result>]" >&2; exit 2; }
	python train/finetune.py "$(BASE)" "$(PAIRS)" "$(NAME)"

ui: $(READY)     ## MLflow's page on http://127.0.0.1:5000
	@case "$${MLFLOW_TRACKING_URI:-}" in http*) echo "MLflow's page is at $$MLFLOW_TRACKING_URI";; *) \
	cd $(HOME_OF_PRESET) && case "$${MLFLOW_TRACKING_URI:-}" in sqlite*) store=$$MLFLOW_TRACKING_URI;; *) store=sqlite:///mlflow.db;; esac; \
	MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false exec mlflow ui --backend-store-uri $$store --host 127.0.0.1 --workers 1;; esac

test: $(READY)   ## All tests
	python -m pytest

lint: $(READY)   ## Style and types
	ruff check .
	ruff format --check .
	mypy

bench: $(READY)  ## Speed and memory against peers
	for each in bench/*.py; do echo "== $$each"; python $$each || exit 1; done

vllm: $(VLLM)/.ready  ## vLLM in an environment of its own, serving a prepared generator: make vllm GENERATOR=smollm2 PORT=8000
	@test -d $(HOME_OF_PRESET)/models/generators/$(GENERATOR)/model || { echo "there is no model of $(GENERATOR); run: dvc repro prepare-generator@$(GENERATOR)" >&2; exit 2; }
	cd $(HOME_OF_PRESET) && VLLM_NO_USAGE_STATS=1 VLLM_CPU_KVCACHE_SPACE=$${VLLM_CPU_KVCACHE_SPACE:-2} $(VLLM)/bin/python -m vllm.entrypoints.openai.api_server \
		--model models/generators/$(GENERATOR)/model --served-model-name $(GENERATOR) --host 127.0.0.1 --port $(PORT) $(if $(HAS_GPU),,--enforce-eager)

$(VLLM)/.ready: $(VLLM_PINS)
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --requirement $(VLLM_PINS)
	$(if $(HAS_GPU),,$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec)
	@touch $@

clean-work:      ## What unfinished and finished long stages keep for next time: say how much, and free it
	@du -sh $(HOME_OF_PRESET)/.work 2>/dev/null || echo "nothing kept"
	@rm -rf $(HOME_OF_PRESET)/.work

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --prefer-binary --constraint constraints.txt --editable '.[test,lint]'
	@touch $@
