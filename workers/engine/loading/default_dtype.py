"""Torch has one default dtype for all threads of a process, and transformers changes it while it creates a model.

So models are created one at a time, and while the thread of the engine is paused: what it computed meanwhile would be
of another dtype.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import RLock
from typing import Any

import torch
from transformers import modeling_utils

# In the thread that loads models for an engine: a context in which the engine's thread is paused.
pausing: ContextVar[Callable[[], AbstractContextManager[Any]]] = ContextVar("pausing", default=nullcontext)

_turn = RLock()
_changed = modeling_utils.local_torch_dtype


@contextmanager
def _in_turn(dtype: torch.dtype, model_class_name: str | None = None) -> Iterator[None]:
    with _turn:
        paused = nullcontext if dtype is torch.get_default_dtype() else pausing.get()
        with paused(), _changed(dtype, model_class_name):
            yield


modeling_utils.local_torch_dtype = _in_turn
