"""Settings from the environment: honoured, or refused with the name of the offender."""

import difflib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec

from domain.limits import LEAST_BODY_LIMIT
from domain.redis_url import read_redis_url
from settings.fields import Settings, variable_of

# Of whoever calls the server, from the same terminal perhaps; see cli/remote.py.
CLIENT_VARIABLES = ("CELERITY_CLIENT_URL", "CELERITY_CLIENT_KEY")
# Settings with several values, between commas.
LISTS = {"api_keys", "hub_models"}
# With any of these Celery speaks to that server, whatever its configuration says, and no operation would ever end.
CELERY_VARIABLES = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND")


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment; an empty variable is an absent one.

    Raises:
        ValueError: a CELERITY_ name that is not a setting, a value that its setting does not take, a variable with
            which Celery would overrule them, or traces without the packages that they need.
    """
    _refuse_unknown(environment)
    _refuse_overruling(environment)
    given: dict[str, object] = {
        name: text for name in Settings.__struct_fields__ if (text := environment.get(variable_of(name)))
    }
    for name in LISTS & given.keys():
        given[name] = [part.strip() for part in str(given[name]).split(",") if part.strip()]
    settings = msgspec.convert({}, Settings)
    for name, value in given.items():
        settings = msgspec.structs.replace(settings, **{name: _convert(name, value)})
    _check_redis_url(settings)
    _check_bodies(settings)
    if settings.traces and not _can_trace():
        raise ValueError("CELERITY_TRACES needs packages that are not here: pip install -r requirements-traces.txt")
    return settings


def _check_redis_url(settings: Settings) -> None:
    try:
        read_redis_url(settings.redis_url)
    except ValueError as error:
        raise ValueError(f"CELERITY_REDIS_URL has a value that it does not take: {error}") from error


def _check_bodies(settings: Settings) -> None:
    if settings.max_inflight_body_bytes < settings.max_body_bytes:
        raise ValueError(
            f"CELERITY_MAX_INFLIGHT_BODY_BYTES has a value that it does not take: a body may have "
            f"{settings.max_body_bytes} bytes (CELERITY_MAX_BODY_BYTES), so less could hold none"
        )
    if 0 < settings.max_body_bytes_per_key < LEAST_BODY_LIMIT:
        raise ValueError(
            "CELERITY_MAX_BODY_BYTES_PER_KEY has a value that it does not take: "
            f"must be at least {LEAST_BODY_LIMIT}, or 0"
        )


def _can_trace() -> bool:
    try:
        return find_spec("opentelemetry.instrumentation.celery") is not None
    except ModuleNotFoundError:
        # A package above it is missing too.
        return False


def _convert(name: str, value: object) -> object:
    """One value, on its own, so that the error can name its variable."""
    try:
        converted = msgspec.convert({name: value}, Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
        raise ValueError(f"{variable_of(name)} has a value that it does not take: {reason}") from error
    return getattr(converted, name)


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    known = {*CLIENT_VARIABLES, *(variable_of(name) for name in Settings.__struct_fields__)}
    for variable in environment:
        if variable.startswith("CELERITY_") and variable not in known:
            near = difflib.get_close_matches(variable, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{variable} is not a setting of Celerity{hint}")


def _refuse_overruling(environment: Mapping[str, str]) -> None:
    for variable in CELERY_VARIABLES:
        if environment.get(variable):
            raise ValueError(f"{variable} would overrule CELERITY_REDIS_URL in Celery: unset it")


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(kind)
