"""A forward-backward: each sample's targets, shaded by advantage, and the metrics of the call."""

from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.console.token_decoder import TokenDecoder
from app.console.words import Word, by_advantage, plain
from domain.forward_backward import ForwardBackwardRequest, ForwardBackwardResult
from domain.session import Session

MOST_SAMPLES = 16
MOST_TOKENS = 1000


class TrainedSample(NamedTuple):
    """`trained` of its `length` targets count; `cut` of them are not shown."""

    words: list[Word]
    length: int
    trained: int
    cut: int


def training_page(
    session: Session, request: ForwardBackwardRequest | None, result: ForwardBackwardResult | None
) -> dict[str, Any]:
    """What the page shows, within bounds. Without the request there are metrics alone."""
    model, count = session.spec.base_model.name, len(request.offsets) - 1 if request else 0
    samples = [_sample(model, request, index) for index in range(min(count, MOST_SAMPLES))] if request else []
    return {
        "asked": _asked(request) if request else None,
        "samples": samples,
        "samples_left_out": count - len(samples),
        "has_advantages": request is not None and request.advantages_T is not None,
        "is_text": TokenDecoder(model).is_text,
        "metrics": {"loss": result.loss, **result.metrics} if result else None,
    }


def _asked(request: ForwardBackwardRequest) -> dict[str, Any]:
    kept = {"forward_only": True} if request.forward_only else {}
    return {"loss": type(request.loss).__struct_config__.tag, **msgspec.structs.asdict(request.loss), **kept}


def _sample(model: str, request: ForwardBackwardRequest, index: int) -> TrainedSample:
    """The first token, which nothing predicts, then the targets."""
    begin, end = int(request.offsets[index]), int(request.offsets[index + 1])
    shown = slice(begin, min(end, begin + MOST_TOKENS))
    trained_T = request.weights_T[begin:end] != 0
    advantages_T = np.zeros_like(request.weights_T) if request.advantages_T is None else request.advantages_T
    decoder = TokenDecoder(model)
    first = plain(decoder, request.tokens_T[shown][:1].tolist())
    targets = by_advantage(
        decoder, request.targets_T[shown].tolist(), advantages_T[shown].tolist(), trained_T[:MOST_TOKENS].tolist()
    )
    words = [word._replace(shade="masked") for word in first] + list(targets)
    return TrainedSample(words, end - begin, int(trained_T.sum()), max(0, end - begin - MOST_TOKENS))
