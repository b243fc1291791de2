"""From ASGI, in which the server speaks, to WSGI, in which the application does.

A thread is taken only once a request is whole, and is free again once its answer is made: who sends or reads slowly
waits in the event loop, where waiting costs nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from app.errors import BusyError, too_large
from app.server.answer import BATCH_BYTES, Answer, Application
from app.server.body import SMALL_BODY, Body, ClientGoneError, Receive
from app.server.body_budget import BodyBudget, Reservation
from app.server.connection import CONNECTION, Connection
from app.server.environ import Environ, announced, drop_body, environ_of, give_body

Send = Callable[[Any], Any]


class Gateway:
    def __init__(self, application: Application, pool: ThreadPoolExecutor, budget: BodyBudget) -> None:
        self._application = application
        self._pool = pool
        self._budget = budget

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        try:
            with self._budget.reserve() as reservation:
                environ = environ_of(scope, reservation)
                answer = await self._answer(environ, Body(receive), reservation)
                drop_body(environ)
        except ClientGoneError:
            return
        await self._deliver(answer, scope[CONNECTION], send)

    async def _answer(self, environ: Environ, body: Body, reservation: Reservation) -> Answer:
        if announced(environ) <= SMALL_BODY:
            await body.read(SMALL_BODY)
        if not body.is_whole:
            # The application says whether it is to come, from the head alone.
            answer = await self._call(environ)
            if answer.status != HTTPStatus.CONTINUE:
                return answer
        give_body(environ, await self._read(body, reservation))
        return await self._call(environ)

    async def _read(self, body: Body, reservation: Reservation) -> bytes | Exception:
        while not body.is_whole:
            if body.size > reservation.most:
                return too_large(reservation.most)
            # One whose length was not announced takes its reservation as it comes.
            if not reservation.grow(body.size):
                return BusyError()
            await body.read(body.size)
        return body.take() if body.size <= max(reservation.most, SMALL_BODY) else too_large(reservation.most)

    async def _call(self, environ: Environ) -> Answer:
        return await self._in_thread(Answer, self._application, environ)

    async def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *arguments)

    async def _deliver(self, answer: Answer, connection: Connection, send: Send) -> None:
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        while not connection.is_gone:
            *parts, last = [*_parts(answer.batch)] or [memoryview(b"")]
            for part in parts:
                await self._send(part, connection, send, more=True)
            await self._send(last, connection, send, more=not answer.is_whole)
            if answer.is_whole:
                return
            await self._in_thread(answer.make_batch)
        await self._in_thread(answer.close)

    async def _send(self, part: memoryview, connection: Connection, send: Send, *, more: bool) -> None:
        await send({"type": "http.response.body", "body": part, "more_body": more})
        connection.handed += len(part)


def _parts(batch: list[bytes]) -> Iterator[memoryview]:
    """The same bytes, no more at once than a client should be known to read."""
    for piece in batch:
        view = memoryview(piece)
        for start in range(0, len(view), BATCH_BYTES):
            yield view[start : start + BATCH_BYTES]
