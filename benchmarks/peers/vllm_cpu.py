"""vLLM in its CPU build, in process, with its defaults: compiled, continuous batching, prefix caching."""

from pathlib import Path

from vllm import LLM, SamplingParams

from benchmarks.workloads import Sampling

CONTEXT = 2048


class Vllm:
    """Samples the base model without an adapter, which only helps it."""

    def __init__(self, model: Path, dtype: str) -> None:
        self._llm = LLM(
            str(model),
            dtype=dtype,
            skip_tokenizer_init=True,
            max_model_len=CONTEXT,
            max_num_seqs=64,
            disable_log_stats=True,
        )

    def sample(self, workload: Sampling) -> int:
        prompts = [{"prompt_token_ids": request.prompt} for request in workload.requests]
        params = [
            SamplingParams(
                n=request.num_samples,
                max_tokens=request.max_tokens,
                temperature=1.0,
                logprobs=0,
                ignore_eos=True,
                detokenize=False,
            )
            for request in workload.requests
        ]
        answers = self._llm.generate(prompts, params, use_tqdm=False)
        return sum(len(output.token_ids) for answer in answers for output in answer.outputs)


def load(model: Path, dtype: str, device: str, threads: int) -> Vllm:  # noqa: ARG001 - its threads come from OMP
    assert device == "cpu", "this is the CPU build"
    return Vllm(model, dtype)
