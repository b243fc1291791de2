"""One forward-backward call, a micro-batch at a time."""

import math
from collections import deque
from concurrent.futures import Future

import torch
from torch import Tensor

from contract.forward_backward import CrossEntropy, ForwardBackwardRequest, ForwardBackwardResult
from workers.engine.adapter import Adapter
from workers.engine.attention import SegmentAttention
from workers.engine.base_model import BaseModel
from workers.engine.config import EngineConfig
from workers.engine.dropout import Dropout
from workers.engine.failures import non_finite
from workers.engine.forward_pass import ForwardPass
from workers.engine.logprob_head import target_logprobs
from workers.engine.lora import Route
from workers.engine.losses.arrays import TokenArrays
from workers.engine.losses.loss import report, scales, token_losses
from workers.engine.micro_batches import cut
from workers.engine.packed_call import MicroBatch, PackedCall


class TrainingPass:
    """Gradients gather aside and reach the adapter at the end, whole and finite, or never.

    `seed` draws the dropout masks, which act in cross-entropy only.
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
        self.session_id = session_id
        self.future = future
        self._request, self._adapter, self._base, self._seed = request, adapter, base, seed
        self._horizon = config.horizon
        self._call = PackedCall(request)
        self._micro_batches = deque(cut(self._call.lengths, config.micro_batch_tokens))
        self._targets_T = torch.from_numpy(request.targets_T.astype("int64")).to(base.device)
        self._arrays = TokenArrays.of(request, base.device)
        self._scales_T = torch.from_numpy(scales(request, config.horizon)).to(base.device)
        self._logprobs_T = torch.zeros(len(request.tokens_T), device=base.device)
        self._entropies_T = torch.zeros_like(self._logprobs_T)
        self._gradients = torch.zeros_like(adapter.gradients)
        self.has_begun = False

    def advance(self) -> bool:
        """One micro-batch; whether there are more."""
        self.has_begun = True
        if self._micro_batches:
            self._run(self._call.micro_batch(self._micro_batches.popleft(), self._base.device))
        if self._micro_batches:
            return True
        self.future.set_result(self._finish())
        return False

    def fail(self, error: Exception) -> None:
        self.future.set_exception(error)

    def _run(self, batch: MicroBatch) -> None:
        with torch.set_grad_enabled(not self._request.forward_only):
            route = Route(self._adapter, slice(0, len(batch.tokens_T)), self._dropout(batch))
            attention = SegmentAttention(batch.lengths)
            hidden_TD = self._base.hidden(ForwardPass(batch.tokens_T, batch.positions_T, attention, [route]))
            targets_N = self._targets_T[batch.index_N]
            logprobs_N, entropies_N = target_logprobs(hidden_TD[batch.rows_N], self._base.head, targets_N)
        self._logprobs_T[batch.index_N] = logprobs_N.detach()
        self._entropies_T[batch.index_N] = entropies_N
        if not self._request.forward_only:
            self._differentiate(logprobs_N, batch.index_N)

    def _differentiate(self, logprobs_N: Tensor, index_N: Tensor) -> None:
        trained_N = self._arrays.weights_T[index_N] != 0
        if not trained_N.any():
            return
        index_N = index_N[trained_N]
        losses_N = token_losses(logprobs_N[trained_N], self._arrays.select(index_N), self._request.loss)
        loss = (self._scales_T[index_N].float() * losses_N).sum()
        views = [leaf for matrices in self._adapter.layout.matrices(self._gradients) for leaf in matrices.leaves]
        for view, gradient in zip(views, torch.autograd.grad(loss, self._adapter.leaves), strict=True):
            view += gradient

    def _dropout(self, batch: MicroBatch) -> Dropout | None:
        acts = isinstance(self._request.loss, CrossEntropy) and not self._request.forward_only
        if not acts or self._adapter.dropout == 0:
            return None
        return Dropout(self._adapter.dropout, self._seed, batch.samples, batch.lengths)

    def _finish(self) -> ForwardBackwardResult:
        trained_N = self._arrays.weights_T.nonzero()[:, 0]
        loss, metrics = report(
            self._logprobs_T[trained_N],
            self._entropies_T[trained_N],
            self._arrays.select(trained_N),
            self._scales_T[trained_N],
            self._request.loss,
            self._horizon,
        )
        tensors_finite = all(bool(part.isfinite().all()) for part in (self._logprobs_T, self._gradients))
        if not tensors_finite or not all(map(math.isfinite, [loss, *metrics.values()])):
            raise non_finite(
                "The loss or its gradients are not finite: nothing was added. Check logprobs and advantages."
            )
        if not self._request.forward_only:
            self._adapter.accumulate(self._gradients)
        if not self._request.return_logprobs:
            return ForwardBackwardResult(loss=loss, metrics=metrics)
        logprobs_T = self._logprobs_T.where(self._arrays.weights_T != 0, 0.0).cpu().numpy()
        offsets = self._request.offsets
        return ForwardBackwardResult(loss=loss, metrics=metrics, logprobs_T=logprobs_T, offsets=offsets)
