"""The forward-backward calls that train together on one base model."""

from collections import deque
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from workers.engine.adapters.rows import AdapterRows
from workers.engine.decoder.forward_pass import ForwardPass
from workers.engine.failures import as_failure
from workers.engine.loading.base_model import BaseModel
from workers.engine.training.forward_backward import ForwardBackwardCall
from workers.engine.training.micro_batches import MicroBatch
from workers.engine.utilization import Utilization


class TrainingBatch:
    """Micro-batches of several sessions share a forward and a backward pass as long as they fit in one of
    `max_tokens`. Each call is cut as it would be alone, so that sharing changes nothing of its sums. `utilization`
    counts the tokens of each pass."""

    def __init__(self, base: BaseModel, max_tokens: int, merges: bool, utilization: Utilization) -> None:
        self._base, self._max_tokens, self._merges, self._utilization = base, max_tokens, merges, utilization
        self._calls: deque[ForwardBackwardCall] = deque()

    def add(self, call: ForwardBackwardCall) -> None:
        self._calls.append(call)

    def advance(self) -> bool:
        """Runs a pass for the call that has waited longest and for others that fit beside it; returns whether there are
        more calls."""
        if not self._calls:
            # All calls were abandoned.
            return False
        chosen = self._choose()
        done = chosen if self._run(chosen) else []
        if not done and len(chosen) > 1:
            # One of them is at fault, or all together do not fit in memory: each is run alone to find out.
            done = [call for call in chosen if self._run([call])]
        for call in chosen:
            self._calls.remove(call)
        for call in done:
            self._go_on(call)
        return bool(self._calls)

    def fail(self, error: Exception) -> None:
        self.abandon(lambda _: True, error)

    def abandon(self, is_meant: Callable[[ForwardBackwardCall], bool], error: Exception) -> None:
        """Fails the calls for which `is_meant` is true."""
        for call in filter(is_meant, list(self._calls)):
            self._calls.remove(call)
            call.fail(error)

    def _choose(self) -> list[ForwardBackwardCall]:
        first, *others = self._calls
        chosen, room = [first], self._max_tokens - _size(first)
        for call in others:
            alike = self._merges and call.differentiates == first.differentiates
            if alike and _size(call) <= room and all(call.adapter is not other.adapter for other in chosen):
                chosen.append(call)
                room -= _size(call)
        return chosen

    def _go_on(self, call: ForwardBackwardCall) -> None:
        """To its next micro-batch, or to its end."""
        try:
            if call.has_more():
                self._calls.append(call)
            else:
                call.finish()
        except Exception as error:  # noqa: BLE001 - the boundary between one call and those that ran beside it
            call.fail(as_failure(error))

    def _run(self, calls: Sequence[ForwardBackwardCall]) -> bool:
        """Runs the upcoming micro-batches of all calls in one pass; returns whether it succeeded. A failure ends a call
        that was alone, and leaves several calls unchanged."""
        try:
            self._pass([call for call in calls if call.upcoming])
        except Exception as error:  # noqa: BLE001 - the boundary between one call and those that run beside it
            if len(calls) == 1:
                calls[0].fail(as_failure(error))
            return False
        return True

    def _pass(self, calls: Sequence[ForwardBackwardCall]) -> None:
        if not calls:
            return
        batches = [batch for call in calls if (batch := call.upcoming)]
        self._utilization.add(sum(map(_size, calls)))
        with torch.set_grad_enabled(calls[0].differentiates):
            hiddens = self._hidden(calls, batches)
            losses = [call.loss(hidden_TD) for call, hidden_TD in zip(calls, hiddens, strict=True)]
        trained = [(call, loss) for call, loss in zip(calls, losses, strict=True) if loss is not None]
        if not trained:
            return
        leaves = [leaf for call, _ in trained for leaf in call.adapter.leaves]
        gradients = iter(torch.autograd.grad([loss for _, loss in trained], leaves))
        for call, _ in trained:
            call.add([next(gradients) for _ in call.adapter.leaves])

    def _hidden(self, calls: Sequence[ForwardBackwardCall], batches: Sequence[MicroBatch]) -> Sequence[Tensor]:
        """Each micro-batch's hidden states [T, D]."""
        lengths = [len(batch.tokens_T) for batch in batches]
        starts = [sum(lengths[:index]) for index in range(len(lengths))]
        rows = [
            AdapterRows(call.adapter, slice(start, start + length), call.dropout())
            for call, start, length in zip(calls, starts, lengths, strict=True)
        ]
        tokens_T, positions_T = (
            torch.cat(parts) for parts in zip(*((batch.tokens_T, batch.positions_T) for batch in batches), strict=True)
        )
        attention = self._base.backend.attention([segment for batch in batches for segment in batch.segments])
        hidden_TD = self._base.hidden(ForwardPass(tokens_T, positions_T, attention, rows))
        return torch.split(hidden_TD, lengths)


def _size(call: ForwardBackwardCall) -> int:
    return len(call.upcoming.tokens_T) if call.upcoming else 0
