"""HTTP with one worker over its unix socket; here httpx's errors and a worker's end become ours.

httpx is imported when the first client is made (quality.md: `rune --version` must not load it).
Connections are not kept: llama.cpp sometimes closes one that it promised to keep, and a new one over a unix
socket costs next to nothing.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rune.errors import ModelError, ModelUnavailableError, Phase, ProtocolError, StreamBrokenError
from rune.models.embedded.process import EmbeddedWorker, Launch, start_worker
from rune.models.embedded.wire import refusal
from rune.models.wire.failures import from_httpx

if TYPE_CHECKING:
    import httpx

_ADDRESS = "the embedded model's worker"
_OK = 200
_AFTERMATH = 0.2  # seconds between a closed socket and the news that its process has ended

T = TypeVar("T")


class _Slot(msgspec.Struct):
    n_ctx: int
    is_processing: bool


class _Tokens(msgspec.Struct):
    tokens: list[int]


class EmbeddedClient:
    """A worker and the way to speak to it. `window` is what it really loaded, in tokens."""

    def __init__(self, worker: EmbeddedWorker, http: "httpx.AsyncClient", http_error: type[Exception]) -> None:
        self.worker = worker
        self.window: int | None = None
        self._http = http
        self._http_error = http_error

    async def measure_window(self) -> None:
        """Ask for the window in force. Raises ModelUnavailableError, ProtocolError."""
        self.window = (await self._slots())[0].n_ctx

    async def count(self, text: bytes) -> int:
        """Return how many tokens a UTF-8 text is."""
        content = msgspec.json.encode({"content": text.decode(), "add_special": False})
        return len((await self._ask("POST", "/tokenize", _Tokens, content)).tokens)

    async def idle(self, *, within: float) -> bool:
        """Say whether it has stopped generating, or does within so many seconds."""
        try:
            async with asyncio.timeout(within):
                # It answers between two batches, and its slot is free one batch later.
                while any(slot.is_processing for slot in await self._slots()):  # noqa: ASYNC110 - another process's state
                    await asyncio.sleep(0.002)
        except (TimeoutError, ModelError):
            return False
        return True

    async def open_answer(self, body: bytes, *, estimated: int) -> "httpx.Response":
        """Send a chat request and return the answer's open stream. Raises ModelUnavailableError when the
        worker has gone, and what the server refuses, as its typed error.
        """
        try:
            request = self._http.build_request("POST", "/v1/chat/completions", content=body)
            response = await self._http.send(request, stream=True)
            if response.status_code == _OK:
                return response
            refused = await response.aread()
        except self._http_error as error:
            raise await self._failure(error, phase="first_byte") from error
        raise refusal(response.status_code, refused, phase="first_byte", estimated=estimated)

    async def next_piece(self, pieces: AsyncIterator[bytes], *, phase: Phase) -> bytes:
        """Return the next bytes of an answer that must go on. Raises StreamBrokenError, ModelUnavailableError."""
        try:
            piece = await anext(pieces, None)
        except self._http_error as error:
            raise await self._failure(error, phase=phase) from error
        if piece is None:
            raise await self._failure(None, phase=phase)
        return piece

    async def hang_up(self, response: "httpx.Response") -> None:
        """Close an answer's connection, whole or not; this is what calls the model off."""
        with contextlib.suppress(self._http_error):  # it was broken already
            await response.aclose()

    async def aclose(self, *, kill: bool) -> None:
        """Let go of connections and end the worker."""
        with contextlib.suppress(self._http_error):  # what broke does not matter any more
            await self._http.aclose()
        await (self.worker.kill() if kill else self.worker.stop())

    async def _failure(self, error: Exception | None, *, phase: Phase) -> ModelError:
        manner = await self.worker.end(within=_AFTERMATH)
        if manner and phase == "token":
            return StreamBrokenError(f"the embedded model stopped in mid-answer: {manner}")
        if manner:
            return ModelUnavailableError(f"the embedded model is gone: {manner}", hint="Ask again: it is started anew.")
        if error is None:
            return StreamBrokenError(f"{_ADDRESS} closed the connection before the answer was complete")
        return from_httpx(error, phase=phase, address=_ADDRESS)

    async def _slots(self) -> list[_Slot]:
        slots = await self._ask("GET", "/slots", list[_Slot])
        if not slots:
            raise ProtocolError(f"{_ADDRESS} has no slot")
        return slots

    async def _ask(self, method: str, path: str, kind: type[T], body: bytes | None = None) -> T:
        try:
            response = await self._http.request(method, path, content=body)
        except self._http_error as error:
            raise await self._failure(error, phase="first_byte") from error
        if response.status_code != _OK:
            raise refusal(response.status_code, response.content, phase="first_byte", estimated=0)
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"{_ADDRESS} answers {path} in an unknown form: {error}") from error


async def open_client(launch: Launch) -> EmbeddedClient:
    """Start a worker and connect to it. Cancelling this kills it. Raises as `start_worker` does."""
    import httpx  # noqa: PLC0415 - see the module's docstring

    worker = await start_worker(launch)
    try:
        transport = httpx.AsyncHTTPTransport(
            uds=str(worker.socket),
            # A context without certificates: nothing here speaks TLS, and loading them costs 17 ms.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        http = httpx.AsyncClient(
            transport=transport,
            base_url="http://embedded",
            headers={"Authorization": f"Bearer {worker.key}", "Content-Type": "application/json"},
            timeout=None,  # noqa: S113 - deadlines are kept by the callers, over events instead of bytes
            trust_env=False,
        )
        client = EmbeddedClient(worker, http, httpx.HTTPError)
        await client.measure_window()
    except BaseException:  # also a cancel: no way out of here may leave the child behind
        await asyncio.shield(worker.kill())
        raise
    return client
