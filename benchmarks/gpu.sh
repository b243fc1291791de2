#!/usr/bin/env bash
# For one GPU of the H100 class, in under four minutes: the engine's tests on the device with a tiny model, then the
# product beside generate and peft with a random Llama of one billion weights. Nothing is downloaded; figures end in
# artifacts/bench/gpu.json. Needs .venv with a CUDA build of torch (make setup TORCH_PIP_ARGS=..., make test).
# Without a GPU: benchmarks/gpu.sh --device cpu --tiny
set -euo pipefail
cd "$(dirname "$0")/.."
export HF_HUB_OFFLINE=1
python=${PYTHON:-.venv/bin/python}

timeout 60 "$python" -m pytest -q tests/engine/test_devices.py
timeout 170 "$python" -m benchmarks.gpu "$@"
