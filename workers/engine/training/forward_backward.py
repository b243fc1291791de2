"""A forward-backward call, run a micro-batch at a time."""

import math
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future

import torch
from torch import Tensor

from domain.forward_backward import CrossEntropy, ForwardBackwardRequest, ForwardBackwardResult
from workers.engine.adapters.adapter import Adapter
from workers.engine.adapters.dropout import Dropout
from workers.engine.commit import commit, fail
from workers.engine.config import EngineConfig
from workers.engine.decoder.logprob_head import target_logprobs
from workers.engine.failures import non_finite
from workers.engine.loading.base_model import BaseModel
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.loss import report, scales, token_losses
from workers.engine.training.micro_batches import MicroBatch, PackedCall
from workers.engine.training.vectors import is_finite


class ForwardBackwardCall:
    """Accumulates gradients of its own and adds them to the adapter's at the end, if they are all finite.

    `seed` draws the dropout masks, which are used in cross-entropy only.
    """

    def __init__(
        self,
        session_id: str,
        request: ForwardBackwardRequest,
        adapter: Adapter,
        base: BaseModel,
        config: EngineConfig,
        seed: int,
        future: "Future[ForwardBackwardResult]",
    ) -> None:
        base.check_tokens(request.tokens_T, "the tokens")
        base.check_tokens(request.targets_T, "the target tokens")
        self.session_id, self.adapter = session_id, adapter
        self.future = future
        self._request, self._base, self._seed = request, base, seed
        self._horizon = request.horizon or config.horizon
        self._call = PackedCall(request)
        # Masks differ between samples, so that with dropout samples have no common prefix.
        self._left = deque(self._call.cut(config.micro_batch_tokens, shares=not self._is_dropped_out))
        self._targets_T = torch.from_numpy(request.targets_T.astype("int64")).to(base.device)
        self._arrays = TokenArrays.of(request, base.device)
        self._scales_T = torch.from_numpy(scales(request, self._horizon)).to(base.device)
        self._logprobs_T = torch.zeros(len(request.tokens_T), device=base.device)
        self._entropies_T = torch.zeros_like(self._logprobs_T)
        self._gradients = torch.zeros_like(adapter.gradients)
        self.has_begun = False
        self._take_next()

    @property
    def differentiates(self) -> bool:
        return not self._request.forward_only

    def loss(self, hidden_TD: Tensor) -> Tensor | None:
        """The upcoming micro-batch's part of the loss, from its hidden states [T, D]; None where nothing is trained."""
        batch = self._upcoming()
        self.has_begun = True
        index_N = batch.index_N
        logprobs_N, entropies_N = target_logprobs(hidden_TD[batch.rows_N], self._base.head, self._targets_T[index_N])
        self._logprobs_T[index_N] = logprobs_N.detach()
        self._entropies_T[index_N] = entropies_N
        trained_N = self._arrays.weights_T[index_N] != 0
        if not self.differentiates or not trained_N.any():
            return None
        index_N = index_N[trained_N]
        losses_N = token_losses(logprobs_N[trained_N], self._arrays.select(index_N), self._request.loss)
        return (self._scales_T[index_N].float() * losses_N).sum()

    def add(self, gradients: Iterable[Tensor]) -> None:
        """Adds the gradients of `loss` by the adapter's leaves."""
        views = [leaf for matrices in self.adapter.layout.matrices(self._gradients) for leaf in matrices.leaves]
        for view, gradient in zip(views, gradients, strict=True):
            view += gradient

    def has_more(self) -> bool:
        """Called when the upcoming micro-batch is done: takes the next one, and returns whether there is one."""
        self._take_next()
        return self.upcoming is not None

    def finish(self) -> None:
        """Called when no micro-batch is left: adds the gradients and sets the result, or does neither.

        Raises OperationFailedError, NON_FINITE.
        """
        result = self._result()
        if commit(self.future):
            if self.differentiates:
                self.adapter.accumulate(self._gradients)
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        fail(self.future, error)

    def dropout(self) -> Dropout | None:
        """The dropout of the upcoming micro-batch."""
        if not self._is_dropped_out:
            return None
        batch = self._upcoming()
        lengths = [length for _, suffixes in batch.segments for length in suffixes]
        return Dropout(self.adapter.dropout, self._seed, batch.samples, lengths, self._base.device)

    @property
    def _is_dropped_out(self) -> bool:
        return isinstance(self._request.loss, CrossEntropy) and self.differentiates and self.adapter.dropout > 0

    def _take_next(self) -> None:
        families = self._left.popleft() if self._left else None
        self.upcoming = None if families is None else self._call.micro_batch(families, self._base.device)

    def _upcoming(self) -> MicroBatch:
        assert self.upcoming is not None
        return self.upcoming

    def _result(self) -> ForwardBackwardResult:
        trained_N = self._arrays.weights_T.nonzero()[:, 0]
        loss, metrics = report(
            self._logprobs_T[trained_N],
            self._entropies_T[trained_N],
            self._arrays.select(trained_N),
            self._scales_T[trained_N],
            self._request.loss,
            self._horizon,
        )
        tensors_finite = is_finite(self._logprobs_T) and is_finite(self._gradients)
        if not tensors_finite or not all(map(math.isfinite, [loss, *metrics.values()])):
            raise non_finite(
                "The loss or its gradients are not finite: nothing was added. Check logprobs and advantages."
            )
        if not self._request.return_logprobs:
            return ForwardBackwardResult(loss=loss, metrics=metrics)
        logprobs_T = self._logprobs_T.where(self._arrays.weights_T != 0, 0.0).cpu().numpy()
        offsets = self._request.offsets
        return ForwardBackwardResult(loss=loss, metrics=metrics, logprobs_T=logprobs_T, offsets=offsets)
