"""The port of a server: what comes in on it is answered at once."""

import asyncio
import socket

from shared.ports import open_port


def test_small_pieces_of_an_answer_are_sent_at_once() -> None:
    async def accepted() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ours: socket.socket = writer.get_extra_info("socket")
            told.set_result(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(serve, sock=open_port("127.0.0.1", 0)) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            found = await asyncio.wait_for(told, 10)
            writer.close()
        return found

    assert asyncio.run(accepted()) != 0
