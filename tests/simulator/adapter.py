"""An adapter that is three integers: whatever is lost, doubled or out of order shows in every number after it."""

from domain.operation import ErrorCode, OperationFailedError

PRIME = 2_147_483_647
# Issued for, these fail: the first changes nothing, the second clears the gradient, as those of a real engine do.
BAD_INPUT = -1
NOT_FINITE = -2


class Adapter:
    def __init__(self, weights: int, gradient: int = 0, calls: int = 0, step: int = 0, published: int = -1) -> None:
        """`published` are the weights that samples use; -1 where they use the current ones."""
        self.weights, self.gradient, self.calls, self.step, self.published = weights, gradient, calls, step, published

    def forward_backward(self, number: int) -> int:
        if number == BAD_INPUT:
            raise OperationFailedError(ErrorCode.INVALID_INPUT, "it was asked to fail")
        self.gradient = (31 * self.gradient + number * (1 + self.weights % 1009)) % PRIME
        self.calls += 1
        return (self.gradient + 7 * self.weights) % PRIME

    def optim_step(self, number: int) -> int:
        if not self.calls:
            raise OperationFailedError(ErrorCode.INVALID_INPUT, "nothing was accumulated")
        gradient, self.gradient, self.calls = self.gradient, 0, 0
        if number == NOT_FINITE:
            raise OperationFailedError(ErrorCode.NON_FINITE, "it was asked not to be finite")
        self.step += 1
        self.weights = (17 * self.weights + gradient + number * self.step) % PRIME
        return self.weights

    def weights_sync(self) -> int:
        self.published = self.weights
        return self.step

    def sample(self, number: int) -> int:
        weights = self.weights if self.published < 0 else self.published
        return (weights * (1 + number % 1013) + number) % PRIME

    def copy(self) -> "Adapter":
        return Adapter(self.weights, self.gradient, self.calls, self.step, self.published)

    # What the product asks of the state of an adapter; see workers/engine/adapters/state.py.

    def to_bytes(self) -> bytes:
        numbers = (self.weights, self.gradient, self.calls, self.step, self.published)
        return " ".join(map(str, numbers)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Adapter":
        return cls(*map(int, data.split()))

    def without_gradients(self) -> "Adapter":
        return Adapter(self.weights, step=self.step)

    def weights_only(self) -> "Adapter":
        return Adapter(self.weights)
