"""Who takes part: each engine's environment, and what it can do."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.model import ROOT

THREADS = 2
ENVIRONMENTS = ROOT / ".bench"
# The same for all. Threads that spin while they wait make a run worthless on a machine where anything else happens.
COMMON = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": str(THREADS),
    "GOMP_SPINCOUNT": "3000",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class EngineSpec:
    """`environment` is a folder of .bench/ that `make bench` fills, or the product's own where there is none."""

    name: str
    module: str
    does: tuple[str, ...]
    environment: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        return ENVIRONMENTS / self.environment / "bin" / "python" if self.environment else Path(sys.executable)

    @property
    def is_installed(self) -> bool:
        """An environment counts once its last step has left its stamp."""
        return not self.environment or (ENVIRONMENTS / self.environment / "ready.stamp").exists()

    @property
    def process_environment(self) -> dict[str, str]:
        return os.environ | COMMON | self.variables


CELERITY = EngineSpec("Celerity", "benchmarks.peers.celerity", ("sample", "train"))
GENERATE = EngineSpec("generate", "benchmarks.peers.generate", ("sample",))
PEFT = EngineSpec("peft", "benchmarks.peers.peft", ("train",))
VLLM = EngineSpec(
    "vLLM-CPU",
    "benchmarks.peers.vllm_cpu",
    ("sample",),
    environment="vllm",
    variables={
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CACHE_ROOT": str(ENVIRONMENTS / "vllm" / "cache"),
        "VLLM_NO_USAGE_STATS": "1",
    },
)
LLAMA = EngineSpec("llama.cpp", "benchmarks.peers.llama", ("sample",), environment="llama")
SKYRL = EngineSpec("SkyRL-tx", "benchmarks.peers.skyrl_tx", ("sample", "train"), environment="skyrl")
ENGINES = (CELERITY, GENERATE, VLLM, LLAMA, PEFT, SKYRL)


def engines(task: str, names: list[str] | None = None) -> list[EngineSpec]:
    """Those that do the task and are installed; all of them, or those named."""
    known = {engine.name for engine in ENGINES}
    if unknown := set(names or ()) - known:
        raise ValueError(f"no engine is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    able = [engine for engine in ENGINES if task in engine.does and (not names or engine.name in names)]
    return [engine for engine in able if engine.is_installed]
