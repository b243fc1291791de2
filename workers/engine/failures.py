"""The engine's exceptions, and how exceptions of other libraries become an operation's error."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from domain.operation import ErrorCode, OperationFailedError

MOST_CHARACTERS = 300
PASSING = {errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.ENOSPC}
# The beginnings of RuntimeErrors that come from a device, or from a limit on threads.
OF_THE_MACHINE = ("CUDA", "cuBLAS", "CUBLAS", "cuDNN", "CUDNN", "can't start new thread")


class EngineClosedError(Exception):
    """The engine was closed before the call began: it had no effect and may run elsewhere."""


class ModelRefusedError(OperationFailedError):
    """The base model's directory cannot be served, and loading it again would not help. The message is the reason."""


def model_refused(reason: str) -> ModelRefusedError:
    return ModelRefusedError(ErrorCode.INVALID_INPUT, reason)


def invalid_input(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.INVALID_INPUT, message)


def non_finite(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.NON_FINITE, message)


def out_of_memory(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.RESOURCE_EXHAUSTED, message)


def session_not_active(message: str) -> OperationFailedError:
    return OperationFailedError(ErrorCode.SESSION_NOT_ACTIVE, message)


@contextmanager
def refusing(fault: str, directory: Path) -> Iterator[None]:
    """Around calls of libraries that read the files of `directory`: for a malformed file they raise anything.

    Raises:
        ValueError: `fault` and what was raised, in a line, without the path. Faults of the machine pass unchanged.
    """
    try:
        yield
    except Exception as error:
        if is_of_the_machine(error) or isinstance(error, OperationFailedError | EngineClosedError):
            raise
        raise ValueError(f"{fault}: {in_a_line(error).replace(str(directory), 'its folder')}") from error
    except BaseException as error:
        # A panic in the Rust of tokenizers or safetensors, whose class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"{fault}: {in_a_line(error)}") from error


def in_a_line(error: BaseException) -> str:
    """Its message in one line, truncated; with the name of its class where the message is meant for programmers."""
    message = str(error)
    if "trust_remote_code" in message:
        return "it needs Python code of its own (remote code), which is never run here"
    line = " ".join(message.split())[:MOST_CHARACTERS]
    return line if isinstance(error, ValueError | OSError | ImportError) and line else f"{type(error).__name__} {line}"


def as_failure(error: Exception) -> Exception:
    """The error to report for `error`: running out of memory has a code of its own."""
    if not is_out_of_memory(error):
        return error
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return out_of_memory("The device ran out of memory. Send fewer or shorter samples per call, or try again later.")


def is_of_the_machine(error: Exception) -> bool:
    """Whether the same call may succeed at another time: out of memory, files or threads, a disk that is full or does
    not respond, a failing device."""
    if isinstance(error, OSError):
        return is_out_of_memory(error) or error.errno in PASSING
    if isinstance(error, torch.AcceleratorError):
        return True
    return is_out_of_memory(error) or (isinstance(error, RuntimeError) and str(error).startswith(OF_THE_MACHINE))


def is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    # From mmap, of which the KV cache is made.
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # The CPU allocator raises a plain RuntimeError; its text is the only sign.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
