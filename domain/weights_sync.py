"""The weights-sync operation: from now on samples use the weights as they are."""

import msgspec


class WeightsSyncRequest(msgspec.Struct, frozen=True):
    """What is published are the weights as they are when the operation's turn comes.

    Who asks for it `in_background` does not wait for that turn, and is told which step will be published.
    """

    in_background: bool = False


class WeightsSyncResult(msgspec.Struct, frozen=True):
    """`step` of the weights that are published now."""

    step: int
