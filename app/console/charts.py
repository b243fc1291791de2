"""Which curves are drawn together, and in which order. What is in none of these gets a chart of its own."""

import msgspec


class Chart(msgspec.Struct, frozen=True):
    """`names` are those of the values that operations measure, or of what a user logs."""

    title: str
    names: tuple[str, ...]


# Worked out from the totals by whoever draws.
TOKENS_PER_SECOND = "tokens per second"

CHARTS = (
    Chart("Reward", ("reward",)),
    Chart("Loss", ("loss",)),
    Chart("KL", ("loss/kl_policy/mean", "loss/kl_ref/mean")),
    Chart("Clipped share", ("loss/clip/high_fraction", "loss/clip/low_fraction")),
    Chart("Policy ratio", ("loss/ratio/mean", "loss/ratio/max")),
    Chart("Entropy", ("entropy/mean",)),
    Chart("Gradient norm", ("grad_norm",)),
    Chart("Update norm", ("update_norm",)),
    Chart("Learning rate", ("learning_rate",)),
    Chart("Tokens per second", (TOKENS_PER_SECOND,)),
    Chart("Tokens trained on", ("valid_tokens:sum",)),
)
# The loss in other words.
LEFT_OUT = ("loss:sum", "loss:mean", "loss/horizon")
