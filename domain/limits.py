"""The limits that requests are checked against; every one is a setting and is stated in its error."""

import msgspec

# What the samples-per-call limit may be set to: a longer list is refused before it is looked into.
MOST_SAMPLES = 16_384

# Of one array: the tokens of a chunk, what there is for each token of a sample.
MOST_ENTRIES = 2**20
# A body up to this size is read before anyone is asked who sends it, so no key's limit can be lower.
LEAST_BODY_LIMIT = 64 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for the body; counts for the rest."""

    max_body_bytes: int = 256 * 1024 * 1024
    max_samples_per_call: int = 4096
    max_num_samples: int = 256
    max_rank: int = 256
    max_waiting_operations: int = 256
