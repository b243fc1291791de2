"""Preparing a model for FP4 inference, which the SDK can ask for and this server does not do."""

from typing import NoReturn

from flask import Flask

from store.errors import NotFoundError

PREFIX = "/together/v1/shaping"


def register(app: Flask) -> None:
    for rule in (PREFIX, f"{PREFIX}/<path:_>"):
        app.add_url_rule(rule, "together_shaping", refuse, methods=("GET", "POST"))


def refuse(_: str = "") -> NoReturn:
    raise NotFoundError("FP4 preparation is not offered by this server; download the merged checkpoint instead")
