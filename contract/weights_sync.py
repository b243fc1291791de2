"""The weights-sync operation: from now on samples use the weights as they are."""

import msgspec


class WeightsSyncRequest(msgspec.Struct, frozen=True):
    """There is nothing to ask for: what is published are the weights as they are when the operation's turn comes."""


class WeightsSyncResult(msgspec.Struct, frozen=True):
    """`step` of the weights that are published now."""

    step: int
