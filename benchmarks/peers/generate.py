"""transformers' own `generate`: one padded batch, left-padded, with the logits that logprobs are taken from."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from benchmarks.workloads import Sampling

PAD = 0


class Generate:
    """Samples the base model without an adapter, which only helps it. A batch runs until its longest row is done."""

    def __init__(self, model: Path, dtype: str, device: str, threads: int) -> None:
        torch.set_num_threads(threads)
        loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype), local_files_only=True)
        self._model, self._device = loaded.to(device).eval(), device

    @torch.no_grad()
    def sample(self, workload: Sampling) -> int:
        rows = [request.prompt for request in workload.requests for _ in range(request.num_samples)]
        longest = max(request.max_tokens for request in workload.requests)
        width = max(map(len, rows))
        tokens_BT = torch.tensor([[PAD] * (width - len(row)) + row for row in rows], device=self._device)
        mask_BT = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self._device)
        out = self._model.generate(
            input_ids=tokens_BT,
            attention_mask=mask_BT,
            max_new_tokens=longest,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            pad_token_id=PAD,
            output_logits=True,
            return_dict_in_generate=True,
        )
        new_BN = out.sequences[:, width:]
        for step, logits_BV in enumerate(out.logits):
            torch.log_softmax(logits_BV.float(), -1).gather(1, new_BN[:, step, None])
        assert new_BN.shape == (workload.sequences, longest), new_BN.shape
        return workload.tokens


def load(model: Path, dtype: str, device: str, threads: int) -> Generate:
    return Generate(model, dtype, device, threads)
