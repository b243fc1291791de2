"""What the engine raises, and how a failure inside torch becomes an operation's error."""

import errno

import torch

from contract.operation import ErrorCode, OperationFailedError


class EngineClosedError(Exception):
    """The engine was closed before the job began: it had no effect and may run elsewhere."""


def invalid_input(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.INVALID_INPUT, message)


def non_finite(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.NON_FINITE, message)


def out_of_memory(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.RESOURCE_EXHAUSTED, message)


def session_not_active(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, message)


def as_failure(error: Exception) -> Exception:
    """The error to report for `error`: running out of memory has a code of its own."""
    if not _is_out_of_memory(error):
        return error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return out_of_memory("The device ran out of memory. Send fewer or shorter samples per call, or try again later.")


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    # Mapped pages, which the cache of decoding sequences takes.
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # The CPU allocator raises a plain RuntimeError; its text is the only sign.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
