"""Scripts are run with the names of their arguments, and spell keys as Python does."""

import fakeredis
import pytest

from store import keys
from store.scripts import LUA, arranged


def test_arguments_are_brought_into_the_order_of_the_script_and_the_rest_follows() -> None:
    cancelled = {"most_samples": 3, "id": "o", "session": "s"}
    assert arranged("cancel", cancelled, ("more",)) == ["o", "s", 3, "more"]


def test_none_true_and_false_are_what_a_script_compares_with() -> None:
    admitted = {"id": "k", "digest": None, "is_static": True, "has_static": False, "default_rate": 0.5}
    assert arranged("admit", admitted) == ["k", "", "1", "", 0.5]


@pytest.mark.parametrize("arguments", [{"id": "o"}, {"id": "o", "session": "s", "most_samples": 1, "moist": 2}])
def test_an_argument_that_is_missing_or_unknown_is_not_passed_over(arguments: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match=r"cancel\.lua takes"):
        arranged("cancel", arguments)


@pytest.mark.parametrize("name", sorted(path.stem for path in LUA.glob("*.lua") if path.stem != "common"))
def test_every_script_names_its_arguments(name: str) -> None:
    with pytest.raises(AssertionError, match=f"{name}.lua takes"):
        arranged(name, {"no such": "argument"})


@pytest.mark.parametrize(
    ("call", "key"),
    [
        ("keys.session('s')", "celerity:session:s"),
        ("keys.session_queue('s')", "celerity:session:s:queue"),
        ("keys.idempotency('ann /v1', 'k')", "celerity:idempotency:ann /v1:k"),
        ("keys.owner_sessions_with('ann', 'RUNNING')", "celerity:owner:ann:sessions:RUNNING"),
        ("keys.due", "celerity:due"),
    ],
)
def test_a_key_is_the_same_in_lua(call: str, key: str) -> None:
    lua = keys.lua_table() + f"return {call}"
    assert fakeredis.FakeRedis().eval(lua, 0) == key.encode()


def test_a_family_takes_as_many_arguments_as_its_pattern_has_places() -> None:
    for arguments in ((), ("s", "t")):
        with pytest.raises(ValueError, match="zip"):
            keys.session(*arguments)
