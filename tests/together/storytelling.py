"""One story of calls, told by the sync and by the async methods of the SDK."""

import inspect
from collections.abc import Generator
from functools import partial
from typing import Any

from together import APIStatusError
from together.post_training import OperationFuture

# Of client.post_training.
RESOURCES = (
    "supported_models",
    "model_resources",
    "sessions",
    "operations",
    "checkpoints",
    "prepare_for_fp4_inference",
)

# Each call is yielded, and its answer (a refusal, too) is sent back.
Story = Generator[partial[Any], Any, None]


def name_of(step: partial[Any]) -> str:
    owner = step.func.__self__  # type: ignore[attr-defined]
    kind = owner if inspect.isclass(owner) else type(owner)
    return f"{kind.__name__}.{step.func.__name__}"


def public(kind: type) -> set[str]:
    """The methods of a class, without the async twins and what only runs a coroutine."""
    members = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    methods = {
        name for name, member in members.items() if inspect.isfunction(member) or isinstance(member, classmethod)
    }
    return {f"{kind.__name__}.{name}" for name in methods if not name.endswith("_async") and name != "run"}


def tell(story: Story) -> set[str]:
    """The names of the methods that were called."""
    called: set[str] = set()
    answer: Any = None
    while step := _next(story, answer):
        called.add(name_of(step))
        try:
            answer = step()
            answer = answer.result() if isinstance(answer, OperationFuture) else answer
        except APIStatusError as refusal:
            answer = refusal
    return called


async def tell_async(story: Story) -> set[str]:
    """The same, by the methods' async twins."""
    called: set[str] = set()
    answer: Any = None
    while step := _next(story, answer):
        called.add(name_of(step))
        try:
            answer = await _twin(step)()
            answer = await answer.result_async() if isinstance(answer, OperationFuture) else answer
        except APIStatusError as refusal:
            answer = refusal
    return called


def _next(story: Story, answer: Any) -> partial[Any] | None:
    try:
        return story.send(answer)
    except StopIteration:
        return None


def _twin(step: partial[Any]) -> partial[Any]:
    """That of a high-level client has a name of its own; those of the resources have not."""
    owner, name = step.func.__self__, step.func.__name__  # type: ignore[attr-defined]
    return partial(getattr(owner, f"{name}_async", step.func), *step.args, **step.keywords)
