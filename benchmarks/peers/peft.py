"""transformers with peft: the batch padded to its longest sequence, all logits at once, and AdamW of torch."""

from pathlib import Path
from typing import Any

import psutil
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from benchmarks.workloads import (
    ALPHA,
    GENERATOR_LOGPROB,
    HORIZON,
    LEARNING_RATE,
    RANK,
    RATIO_HIGH,
    RATIO_LOW,
    TARGETS,
    Sample,
    Training,
)

# What a padded batch takes at its peak beside the model, in bytes of the dtype for each logit; and the share of the
# free memory that may be asked for. A batch that needs more is run in parts of equal size.
PEAK_PER_LOGIT = 14
MOST_OF_MEMORY = 0.8


class Peft:
    def __init__(self, model: Path, dtype: str, device: str, threads: int) -> None:
        torch.set_num_threads(threads)
        base: Any = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype), local_files_only=True)
        base.to(device).train()
        lora = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=list(TARGETS))
        self._model, self._device = get_peft_model(base, lora), device
        self._itemsize = getattr(torch, dtype).itemsize
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE)

    def train(self, workload: Training) -> float:
        assert workload.sessions == [0], "a model has one adapter"
        parts = self.parts(workload)
        loss = 0.0
        for part in range(parts):
            share = self._loss(workload.samples[part::parts], len(workload.samples))
            share.backward()
            loss += share.item()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss

    def parts(self, workload: Training) -> int:
        """1 where the whole batch fits."""
        padded = len(workload.samples) * max(sample.length for sample in workload.samples)
        needed = padded * self._model.config.vocab_size * PEAK_PER_LOGIT * self._itemsize
        free = torch.cuda.mem_get_info()[0] if self._device == "cuda" else psutil.virtual_memory().available
        return int(-(-needed // int(MOST_OF_MEMORY * free)))

    def _loss(self, samples: list[Sample], count: int) -> Tensor:
        tokens_BT = self._padded([torch.tensor(sample.tokens[:-1]) for sample in samples])
        targets_BT = self._padded([torch.tensor(sample.tokens[1:]) for sample in samples])
        mask_BT = self._padded([torch.ones(sample.length, dtype=torch.int64) for sample in samples])
        trained_BT = self._padded([torch.arange(sample.length) >= sample.trained_from for sample in samples])
        advantages_B1 = torch.tensor([[sample.advantage] for sample in samples], device=self._device)
        logits_BTV = self._model(input_ids=tokens_BT, attention_mask=mask_BT, use_cache=False).logits
        logprobs_BT = torch.log_softmax(logits_BTV.float(), -1).gather(2, targets_BT[..., None])[..., 0]
        ratios_BT = (logprobs_BT - GENERATOR_LOGPROB).exp()
        clipped_BT = ratios_BT.clamp(RATIO_LOW, RATIO_HIGH)
        losses_BT = torch.maximum(-ratios_BT * advantages_B1, -clipped_BT * advantages_B1)
        return (losses_BT * trained_BT).sum() / (count * HORIZON)

    def _padded(self, rows: list[Tensor]) -> Tensor:
        return pad_sequence(rows, batch_first=True).to(self._device)


def load(model: Path, dtype: str, device: str, threads: int) -> Peft:
    return Peft(model, dtype, device, threads)
