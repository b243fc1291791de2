"""A setting is honoured, or refused with its own name."""

from pathlib import Path

import pytest

from settings import Settings, load_settings
from settings.page import PAGE, page


def test_without_an_environment_there_are_the_defaults() -> None:
    assert load_settings({}) == Settings()


def test_traces_without_their_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"CELERITY_TRACES": "true"}
    assert load_settings(asked).traces
    monkeypatch.setattr("settings.environment.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"CELERITY_TRACES needs .*requirements-traces\.txt"):
        load_settings(asked)


def test_values_are_read_in_their_own_types() -> None:
    given = {
        "DATA_DIR": "/data",
        "CELERITY_MODELS_DIR": "/models",
        "CELERITY_API_KEYS": "one, two,",
        "CELERITY_HORIZON": "7",
        "CELERITY_DEFAULT_WAIT": "0",
        "CELERITY_DEVICE": "cuda:1",
        "CELERITY_DTYPE": "bfloat16",
        "CELERITY_OBJECTS_URL": "",
        "UNRELATED": "x",
    }
    settings = load_settings(given)
    assert (settings.data_dir, settings.models_dir) == (Path("/data"), Path("/models"))
    assert settings.api_keys == ("one", "two")
    assert (settings.horizon, settings.default_wait) == (7, 0.0)
    assert (settings.device, settings.dtype, settings.objects_url) == ("cuda:1", "bfloat16", "")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CELERITY_API_KEYS", "sesame,schlüssel"),
        ("CELERITY_API_KEYS", "open sesame"),
        ("CELERITY_HORIZON", "abc"),
        ("CELERITY_HORIZON", "0"),
        ("CELERITY_HORIZON", "1.5"),
        ("CELERITY_MICRO_BATCH_TOKENS", "-1"),
        ("CELERITY_MAX_BATCH_SEQUENCES", "0"),
        ("CELERITY_MAX_WAIT", "nan"),
        ("CELERITY_MAX_WAIT", "inf"),
        ("CELERITY_MAX_RATE_PER_KEY", "nan"),
        ("CELERITY_MAX_SESSIONS_PER_KEY", "-1"),
        ("CELERITY_HEARTBEAT_TIMEOUT", "0"),
        ("CELERITY_ARRIVAL_TIMEOUT", "0"),
        ("CELERITY_MAX_INFLIGHT_BODY_BYTES", "1000"),
        ("CELERITY_MAX_BODY_BYTES_PER_KEY", "65535"),
        ("CELERITY_DTYPE", "fp16"),
        ("CELERITY_DEVICE", "gpu"),
        ("CELERITY_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_value_that_a_setting_does_not_take_is_refused_by_name(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=variable):
        load_settings({variable: value})


def test_a_name_that_is_no_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="CELERITY_HORZON is not a setting of Celerity; did you mean CELERITY_HORIZON"):
        load_settings({"CELERITY_HORZON": "7"})


def test_the_page_of_all_settings_is_current() -> None:
    assert PAGE.read_text() == page(), "run python -m settings.page"
    assert page().count("\n| `") == len(Settings.__struct_fields__), "each has a line"
