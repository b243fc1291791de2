"""A uvicorn connection with a minimum transfer rate, which answers malformed requests with the API's error JSON."""

from asyncio import BaseTransport
from enum import Enum, auto
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.answers import JSON, write
from app.server.connections import Connections
from app.server.pace import Pace
from schemas.errors import error_body

CONNECTION = "celerity.connection"
"""The key of a scope under which its connection is."""
MOST_HEAD_BYTES = 64 * 1024


class Stage(Enum):
    """What of a request comes next."""

    BETWEEN = auto()
    HEAD = auto()
    BODY = auto()


class Connection(HttpToolsProtocol):
    """`handed` counts the bytes of answers that it was given to send."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        assert isinstance(self.server_state, Connections)
        self._all = self.server_state
        self._received = 0
        self._begun = 0
        self._stage = Stage.BETWEEN
        self._head_bytes = 0
        self._brought_body = False
        self._reading: Pace | None = None
        self._writing: Pace | None = None
        self._answered_at: float | None = None
        self.handed = 0

    @property
    def is_gone(self) -> bool:
        return self.transport.is_closing()

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._reading = self._pace(self._received)
        self._all.is_silent(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.is_lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        self._reading = self._reading or self._pace(self._received)
        begun, is_new, self._brought_body = self._begun, self._stage is Stage.BETWEEN, False
        super().data_received(data)
        is_head = self._stage is Stage.HEAD and self._begun - begun == is_new
        is_trailer = self._stage is Stage.BODY and not self._brought_body
        # All of it is of one head, or of what follows a body in chunks, which is not over yet.
        if is_head or is_trailer:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the header fields have over {MOST_HEAD_BYTES} bytes"
                )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CONNECTION] = self  # type: ignore[literal-required]
        self._stage, self._head_bytes = Stage.HEAD, 0
        self._begun += 1
        self._reading = self._reading or self._pace(self._received)

    def on_header(self, name: bytes, value: bytes) -> None:
        # What follows a body is no part of the head, where it could name another caller (RFC 9110, 6.5.1).
        if self._stage is Stage.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stage, self._head_bytes = Stage.BODY, 0
        self._all.is_busy(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._brought_body, self._head_bytes = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stage = Stage.BETWEEN
        self._reading = self._answered_at = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.cycle.response_complete:
            # Another request came behind this one, and has its turn now.
            return
        self._all.is_silent(self)
        if self._stage is Stage.BODY:
            self._answered_at = self.loop.time()

    def send_400_response(self, _: str) -> None:
        """What uvicorn says of a request that cannot be parsed, of its chunks too."""
        self._refuse(HTTPStatus.BAD_REQUEST, "the request is not valid HTTP")

    def check(self, now: float) -> None:
        """Ends the connection when its peer does not keep the pace."""
        if self._reads_too_slowly(now) or self._is_past_its_answer(now):
            self.transport.abort()
        elif self._sends_too_slowly(now):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive")

    def _sends_too_slowly(self, now: float) -> bool:
        if self._reading is None:
            return False
        if self._waits_for_us():
            self._reading = self._pace(self._received)
        return not self._reading.is_kept(now, self._received)

    def _waits_for_us(self) -> bool:
        if self.flow.read_paused:
            return True
        cycle = self.cycle
        is_open = cycle is not None and not cycle.response_complete
        return is_open and (cycle.waiting_for_100_continue or not cycle.more_body)

    def _reads_too_slowly(self, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        sent = self.handed - unsent
        self._writing = (self._writing or Pace(self._all.grace, now, sent)) if unsent else None
        return self._writing is not None and not self._writing.is_kept(now, sent)

    def _is_past_its_answer(self, now: float) -> bool:
        """The body of an answered request is still read, so that the answer is; but not for ever."""
        return self._answered_at is not None and now > self._answered_at + self._all.grace

    def _pace(self, moved: int) -> Pace:
        return Pace(self._all.grace, self.loop.time(), moved)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answers in place of the application, unless that has begun to, and closes."""
        if self.is_gone:
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = write(error_body(status, sentence, str(uuid4())))
        head = f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.handed += len(body)
        self.transport.close()
