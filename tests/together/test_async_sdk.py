"""Many calls of the async SDK at once."""

import asyncio
from typing import Any

from together.post_training import SessionClient

from tests.together.bodies import tokens


def test_many_samples_wait_at_once_while_others_are_served(session: SessionClient) -> None:
    async def all_of_them() -> list[Any]:
        asked = [session.generator.sample_async(tokens(k + 1), 1, {"max_tokens": 20}) for k in range(64)]
        results = await asyncio.gather(session.retrieve_async(), *asked)
        return results[1:]

    assert len(asyncio.run(all_of_them())) == 64
