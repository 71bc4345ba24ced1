"""One client's connection to the loopback Ollama server: HTTP read and written by hand, so that it can go wrong."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

from tests.ollama_replies import REASONS, Die, Do, Drop, Pause, Received, Reply, Reset, Wait


class Connection(asyncio.Protocol):
    """One client's connection; `gone` is set as soon as the client closes its side."""

    def __init__(self, serve: "Callable[[Connection], Coroutine[Any, Any, None]]") -> None:
        self._serve = serve
        self._buffer = bytearray()
        self._more = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()
        self.task: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.task = asyncio.create_task(self._serve(self))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._more.set()

    def eof_received(self) -> bool:
        self.gone.set()
        self._more.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self._more.set()
        self.task.cancel()

    async def read_request(self) -> Received | None:
        """Return the next request; None when the client has closed."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if not await self._filled():
                return None
        first, *rest = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
        start, length = end + 4, int(headers.get("content-length", "0"))
        while len(self._buffer) < start + length:
            if not await self._filled():
                return None
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return Received(method, path, headers, body, self.gone)

    async def write_reply(self, reply: Reply) -> bool:
        """Write an answer; False when the connection ends with it."""
        # Like the real server: not even the status line is sent before the first token.
        head = b"" if reply.framing == "raw" else _head(reply)
        for part in reply.parts:
            if head and not isinstance(part, Wait | Pause | Do):
                self._write(head)
                head = b""
            if isinstance(part, bytes):
                self._write(b"%x\r\n%s\r\n" % (len(part), part) if reply.framing == "chunked" else part)
            elif not await self._act(part):
                return False
        if head:
            self._write(head)
        if reply.framing == "chunked":
            self._write(b"0\r\n\r\n")
        return reply.framing in {"chunked", "length"}

    async def _act(self, part: Wait | Pause | Do | Drop | Reset | Die) -> bool:
        """Do what stands between the bytes; False when the connection ends here."""
        match part:
            case Wait(event):
                await event.wait()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Do(act):
                act()
            case Drop():
                return False
            case Reset():
                self.abort()
                return False
            case Die():
                os.kill(os.getpid(), signal.SIGKILL)
        return True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Cut the connection with a TCP reset."""
        if self._transport is not None:
            raw = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def _filled(self) -> bool:
        self._more.clear()
        if not self.gone.is_set():
            await self._more.wait()
        return not self.gone.is_set()


def _head(reply: Reply) -> bytes:
    headers = {"Content-Type": "application/x-ndjson" if reply.framing == "chunked" else "application/json"}
    if reply.framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
    elif reply.framing == "length":
        headers["Content-Length"] = str(sum(len(part) for part in reply.parts if isinstance(part, bytes)))
    else:
        headers["Connection"] = "close"
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Said')}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **reply.headers}.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
