"""A sample: its prompts, and the completions of each side by side."""

from typing import Any, NamedTuple

import msgspec

from app.console.token_decoder import TokenDecoder
from app.console.words import Word, by_logprob, plain
from domain.sample import SampleRequest, SampleResult, Sequence
from domain.session import Session

MOST_PROMPTS = 8
MOST_COMPLETIONS = 16
MOST_TOKENS = 1000


class Completion(NamedTuple):
    """`mean` is that of its tokens' logprobs; `cut` how many tokens are not shown."""

    words: list[Word]
    length: int
    stop_reason: str
    mean: float | None
    cut: int


class Prompt(NamedTuple):
    """`cut` tokens at its beginning are not shown; `left_out` are completions that are not."""

    words: list[Word]
    length: int
    cut: int
    completions: list[Completion]
    left_out: int


def sample_page(session: Session, request: SampleRequest | None, result: SampleResult | None) -> dict[str, Any]:
    """What the page shows, within bounds. Without the request there are completions alone."""
    model = session.spec.base_model.name
    count = len(request.prompts) if request else result.num_prompts if result else 0
    each = len(result.sequences) // count if result and count else 0
    prompts = []
    for index in range(min(count, MOST_PROMPTS)):
        tokens = request.prompts[index].tolist() if request else []
        sequences = result.sequences[index * each : (index + 1) * each] if result else ()
        prompts.append(_prompt(model, tokens, sequences))
    return {
        "asked": _asked(request) if request else None,
        "prompts": prompts,
        "prompts_left_out": count - len(prompts),
        "is_text": TokenDecoder(model).is_text,
        "weights_step": result.step if result else None,
    }


def _asked(request: SampleRequest) -> dict[str, Any]:
    names = ("stop", "stop_token_ids")
    stops = {name: ", ".join(map(repr, getattr(request.params, name))) or "–" for name in names}
    params = msgspec.structs.asdict(request.params) | stops
    return {**params, "num_samples": request.num_samples, "seed": request.seed}


def _prompt(model: str, tokens: list[int], sequences: tuple[Sequence, ...]) -> Prompt:
    shown = tokens[-MOST_TOKENS:]
    completions = [_completion(model, shown, sequence) for sequence in sequences[:MOST_COMPLETIONS]]
    words = plain(TokenDecoder(model), shown)
    return Prompt(words, len(tokens), len(tokens) - len(shown), completions, len(sequences) - len(completions))


def _completion(model: str, before: list[int], sequence: Sequence) -> Completion:
    decoder = TokenDecoder(model)
    for token in before:
        # What a token looks like depends on what stands before it.
        decoder.next(token)
    tokens, logprobs = sequence.tokens.tolist(), sequence.logprobs.tolist()
    return Completion(
        words=by_logprob(decoder, tokens[:MOST_TOKENS], logprobs[:MOST_TOKENS]),
        length=len(tokens),
        stop_reason=sequence.stop_reason.value,
        mean=sum(logprobs) / len(logprobs) if logprobs else None,
        cut=max(0, len(tokens) - MOST_TOKENS),
    )
