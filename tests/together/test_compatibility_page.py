"""docs/compatibility.md names every public method of the SDK's post-training resources, and no other."""

import inspect
import re
from pathlib import Path

from together import AsyncTogether, Together

from tests.together.storytelling import RESOURCES

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
NOT_CALLS = {"with_raw_response", "with_streaming_response"}


def methods(client: Together | AsyncTogether) -> set[str]:
    found = set()
    for name in RESOURCES:
        resource = getattr(client.post_training, name)
        members = inspect.getmembers(type(resource), inspect.isfunction)
        found |= {f"{name}.{method}" for method, _ in members if not method.startswith("_")}
    return found - NOT_CALLS


def test_the_page_names_every_method_and_no_other() -> None:
    named = set(re.findall(r"^\| `(\w+\.\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert named == methods(Together(api_key="any"))


def test_sync_and_async_have_the_same_methods() -> None:
    assert methods(Together(api_key="any")) == methods(AsyncTogether(api_key="any"))
