"""Figures from an earlier comparison on two cores of the same kind, for engines that are not installed here.

They stand beside a run for reference, marked as not of it; no ratio is taken with them. Tokens a second.
"""

SAMPLING = {
    ("bfloat16", "1 sequence"): {"generate": 37, "vLLM-CPU": 90, "llama.cpp": 125},
    ("bfloat16", "8 sequences"): {"generate": 185, "vLLM-CPU": 469, "llama.cpp": 373},
    ("bfloat16", "32 sequences"): {"generate": 292, "vLLM-CPU": 793, "llama.cpp": 438},
    ("bfloat16", "rollout"): {"generate": 182, "vLLM-CPU": 679, "llama.cpp": 223},
    ("float32", "1 sequence"): {"generate": 24, "vLLM-CPU": 55, "SkyRL-tx": 30},
    ("float32", "8 sequences"): {"generate": 88, "vLLM-CPU": 292},
    ("float32", "32 sequences"): {"generate": 142, "vLLM-CPU": 489},
    ("float32", "rollout"): {"generate": 82, "vLLM-CPU": 406, "SkyRL-tx": 49},
}
TRAINING = {
    ("bfloat16", "grpo"): {"peft": 335},
    ("float32", "grpo"): {"peft": 114, "SkyRL-tx": 167},
}
