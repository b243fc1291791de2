"""One random stream per purpose, named by integers, so that no stream depends on its neighbours."""

import hashlib

import numpy as np


def random_key(*parts: int, bits: int) -> int:
    """A well-mixed integer of `bits` bits that is the same for the same parts everywhere, always."""
    text = ",".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=(bits + 7) // 8).digest(), "big") >> (-bits % 8)


def uniform_stream(seed: int, prompt_index: int, sequence_index: int) -> np.random.Generator:
    """The uniforms in [0, 1) of one sequence, one per token (Philox, counter-based)."""
    return np.random.Generator(np.random.Philox(key=random_key(seed, prompt_index, sequence_index, bits=128)))
