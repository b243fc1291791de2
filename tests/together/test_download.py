"""The SDK's own ways to download a checkpoint's files."""

import asyncio
from pathlib import Path

import pytest
import torch
from together import AsyncTogether, Together
from together.post_training import SessionClient, download_checkpoint, download_checkpoint_async
from transformers import AutoModelForCausalLM

from tests.together.bodies import PROMPT, tokens
from tests.together.publishing import train


def test_a_downloaded_model_has_the_trained_weights(
    sdk: Together, async_sdk: AsyncTogether, session: SessionClient, tmp_path: Path
) -> None:
    train(session)
    session.trainer.weights_sync()
    saved = session.create_inference_checkpoint().id
    adapter = download_checkpoint(sdk, saved, variant="CHECKPOINT_VARIANT_ADAPTER", output_dir=tmp_path / "adapter")
    assert {file.name for file in adapter} == {"adapter_config.json", "adapter_model.safetensors"}
    asyncio.run(download_checkpoint_async(async_sdk, saved, output_dir=tmp_path / "merged"))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    with torch.no_grad():
        logprobs_TV = model(input_ids=torch.tensor([PROMPT])).logits[0].log_softmax(-1)
    expected = session.generator.compute_logprobs(tokens(*PROMPT))
    assert expected[1:] == pytest.approx([logprobs_TV[t, PROMPT[t + 1]].item() for t in range(3)], abs=1e-4)
