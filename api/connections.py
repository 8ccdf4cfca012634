"""One connection of HTTP/1.1: closed where no request comes in time, and where what comes is none, told so.

uvicorn waits for ever for the rest of a request's head, and says in plain text that it cannot read one.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from api.errors import Answer, log
from api.requests import HEADERS, REQUEST_ID
from shared.ids import new_id

HEAD_WITHIN_S: Final = 30.0
ANSWERABLE: Final = (h11.IDLE, h11.SEND_RESPONSE)
UNREADABLE: Final = Answer(
    400, "malformed", "this is no request of HTTP/1.1, or its head is longer than 64 KiB", {}
)


class Connection(H11Protocol):
    """A connection on which the head of each request is there within 30 s of its first byte."""

    head_within_s = HEAD_WITHIN_S
    _head_timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_working():
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    @override
    def send_400_response(self, msg: str) -> None:
        log.warning("request_unreadable", reason=msg)
        if self.conn.our_state in ANSWERABLE:
            self._write_answer()
        self.transport.close()

    def _is_working(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _write_answer(self) -> None:
        response = UNREADABLE.response()
        given = {**dict(HEADERS), REQUEST_ID: new_id(), "Connection": "close"}
        headers = response.raw_headers + [(name.encode(), value.encode()) for name, value in given.items()]
        head = h11.Response(
            status_code=response.status_code, headers=headers, reason=HTTPStatus.BAD_REQUEST.phrase
        )
        told = (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage())
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in told))

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_within_s, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
