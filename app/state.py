"""What every view reaches: settings, the store, and the hub's word on models that no worker has at hand."""

from threading import Semaphore
from typing import cast

import msgspec
from flask import Flask, current_app

from app.cached_check import CachedCheck
from models.hub import Hub
from settings import Settings
from store.store import Store

EXTENSION = "celerity"


class State(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    store: Store
    hub: Hub
    held_requests: Semaphore
    objects_check: CachedCheck


def keep(app: Flask, state: State) -> None:
    app.extensions[EXTENSION] = state


def state() -> State:
    """The state of the application that serves this request."""
    return cast(State, current_app.extensions[EXTENSION])
