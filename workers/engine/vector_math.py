"""MKL's vector math (VML), which torch's exp, log, sin, cos and their like are computed by on x86-64 CPUs."""

import torch


def choose_vector_math() -> None:
    """Has MKL choose its functions for this processor, in one thread, before several of them ask for it at once.

    It chooses at a process's first call. Where that came from several threads, one of them could be given functions of
    half the digits: seen in one process of 500 on two busy cores (pytorch/pytorch#188792, mended in MKL 2025).
    """
    for function in (torch.exp, torch.log, torch.sin, torch.cos, torch.tanh, torch.erf, torch.sqrt):
        for dtype in (torch.float32, torch.float64):
            function(torch.ones(1, dtype=dtype))
