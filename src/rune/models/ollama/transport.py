"""Ollama through its native API; never `/v1`, which ignores `num_ctx` (models.md)."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from rune.errors import (
    CapabilityMissingError,
    ModelError,
    Phase,
    ProtocolError,
    ServerError,
)
from rune.models.ollama import catalog, library
from rune.models.ollama.attempts import Attempt
from rune.models.ollama.failures import from_status
from rune.models.ollama.wire import AnswerDecoder, chat_body, offers_tools
from rune.models.transport import ChatChunk, ChatRequest, Completed, LoadedModel, ModelInfo, Progress, PullProgress
from rune.models.wire.endpoint import locality
from rune.models.wire.http import CONNECT_TIMEOUT, Asked, ClientFactory, ServerHttp, make_client
from rune.models.wire.ndjson import LINE_CAP, LineSplitter
from rune.models.wire.retries import Retries
from rune.records.traces import Dialect

if TYPE_CHECKING:
    import httpx

# Discovery asks what is there; a server that is there answers at once.
_DISCOVERY_CONNECT: Final = 1.0
_DISCOVERY: Final = 5.0
# A server that sends on and on and nothing of an answer: larger than the largest line.
_MOST_UNSAID: Final = 2 * LINE_CAP
# Whoever chooses a model lists all of them and then describes one: so soon, the list is the same.
_FRESH: Final = 1.0

Sleep = Callable[[float], Awaitable[None]]


class OllamaTransport:
    """One Ollama server. `base_url` as `endpoint.ollama_base_url` gives it; time-outs in seconds.

    `sleep` waits between the few tries that rule 14 allows: a connection refused or cut before any byte,
    once; a full queue, twice. Nothing is sent again as it was once a byte of the answer has come. A call that the
    server could not read is asked for again, at most twice and calmer, and a level of thinking that it does not know
    once as plain thinking; both only while nothing of the answer was given.
    """

    def __init__(
        self,
        base_url: str,
        *,
        first_byte_timeout: float = 600.0,
        token_timeout: float = 60.0,
        client_factory: ClientFactory = make_client,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._http = ServerHttp(base_url, refusal=from_status, client_factory=client_factory)
        self._first_byte_timeout = first_byte_timeout
        self._token_timeout = token_timeout
        self._sleep = sleep
        self._remote = locality(base_url) == "remote"
        # When the list was asked for last, and it; what `/api/show` said by digest, which names exact weights.
        self._listed: tuple[float, list[ModelInfo]] = (-math.inf, [])
        self._shown: dict[str, dict[str, Any]] = {}
        self._without_levels: set[str] = set()

    @property
    def provider(self) -> str:
        """`ollama`."""
        return catalog.PROVIDER

    @property
    def dialect(self) -> Dialect:
        """`ollama`."""
        return "ollama"

    async def models(self) -> list[ModelInfo]:
        """List the installed models, newest first; their capabilities are a first guess, `describe` knows.

        Raises ModelUnavailableError when nobody answers, else another ModelError.
        """
        listed = catalog.read_tags(await self._discover("GET", "/api/tags"), remote=self._remote)
        self._listed = asyncio.get_running_loop().time(), listed
        return listed

    async def describe(self, model: str) -> ModelInfo:
        """Describe one model, with the size and digest that its entry in the list has.

        Raises ModelNotFoundError, ModelUnavailableError, else another ModelError.
        """
        asked, listed = self._listed
        if asyncio.get_running_loop().time() - asked > _FRESH:
            listed = await self.models()
        entry = next((info for info in listed if catalog.same_model(info.name, model)), None)
        digest = entry.digest if entry is not None else ""
        answer = self._shown.get(digest)
        if answer is None:
            answer = await self._discover("POST", "/api/show", catalog.show_body(model), model=model)
            if digest:
                self._shown[digest] = answer
        return catalog.read_show(answer, name=model, listed=entry, remote=self._remote)

    async def window_in_force(self, model: str) -> int | None:
        """Return the window that the loaded model really has, in tokens; None when unknown or not loaded."""
        return catalog.read_window(await self._discover("GET", "/api/ps"), model)

    async def loaded(self) -> list[LoadedModel]:
        """List what is in memory, from `/api/ps`. Raises ModelUnavailableError, else another ModelError."""
        return catalog.read_loaded(await self._discover("GET", "/api/ps"))

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order. Raises CapabilityMissingError for a model that only chats,
        ContextTruncatedError for a text over its window, ProtocolError when the counts do not agree.
        """
        if not texts:
            return []
        body = catalog.embed_body(model, list(texts))
        try:
            answer = await self._http.ask(
                "POST", "/api/embed", body, model=model, within=self._first_byte_timeout, connect=CONNECT_TIMEOUT
            )
        except ServerError as error:
            if error.status == HTTPStatus.NOT_IMPLEMENTED or "support embeddings" in error.text:
                raise CapabilityMissingError(model, "embedding") from error
            raise
        return catalog.read_vectors(answer, expected=len(texts))

    async def pull(self, model: str) -> AsyncGenerator[PullProgress]:
        """Fetch a model (see `ModelLibrary.pull`); StreamBrokenError unless the server said `success`."""
        async with aclosing(library.pull(self._http, model, silence=self._first_byte_timeout)) as steps:
            async for progress in steps:
                if progress.status == library.SUCCESS:
                    self._forget()
                yield progress

    async def remove(self, model: str) -> None:
        """Remove a model from the server's disk. Raises ModelNotFoundError, ModelUnavailableError."""
        await library.remove(self._http, model)
        self._forget()

    async def close(self) -> None:
        """Close the connections; may be called twice, and a later call opens new ones."""
        await self._http.close()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        """Stream one answer (see `ChatTransport.chat`). Closing the iterator closes the connection at once,
        which is the only way to call Ollama off (rule 13).
        """
        attempt = Attempt(request=request)
        if request.model in self._without_levels and attempt.has_level:
            attempt = attempt.without_level()
        while True:
            given = False
            try:
                async with aclosing(self._attempt(attempt.request)) as chunks:
                    async for chunk in chunks:
                        given = given or not isinstance(chunk, Progress)
                        yield chunk
            except ModelError as error:
                changed = None if given else attempt.after(error)
                if changed is None:
                    raise
                if attempt.has_level and not changed.has_level:
                    self._without_levels.add(request.model)
                attempt = changed
            else:
                return

    async def _attempt(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        opening = asyncio.create_task(self._open(chat_body(request), request))
        looking = asyncio.create_task(self._phase(request.model))
        try:
            # Nothing comes while the model loads or reads; whether it does is asked beside the call.
            await asyncio.wait({opening, looking}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                yield Progress(looking.result(), 0, request.estimated)
            async with aclosing(self._answer(await opening, request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            await _call_off(opening, looking)

    async def _answer(self, opened: "_Opened", request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        decoder, splitter = AnswerDecoder(request), LineSplitter()
        silence = _Silence(opened.deadline, self._between_lines(request))
        part, unsaid = opened.first, 0
        try:
            while part is not None:
                unsaid += len(part)
                for line in splitter.feed(part):
                    silence.heard(line)
                    for chunk in decoder.read(line, splitter.number):
                        if isinstance(chunk, Completed):
                            await self._http.drain(opened.parts)
                        unsaid = 0
                        yield chunk
                    if decoder.done:
                        return
                if unsaid > _MOST_UNSAID:
                    raise ProtocolError(f"{self._http.url} sent {unsaid:,} bytes and nothing of an answer")
                part = await self._http.read(opened.parts, silence.begin(), silence.phase)
                silence.end()
            for chunk in decoder.ended(splitter.rest(), splitter.number):
                yield chunk
        except ModelError:
            for chunk in decoder.held():
                yield chunk
            raise

    async def _open(self, body: bytes, request: ChatRequest) -> "_Opened":
        """Send the call and wait for its first bytes, which are the first token's."""
        asked = Asked(model=request.model, estimated=request.estimated, window=request.options.num_ctx)
        deadline = asyncio.get_running_loop().time() + self._first_byte_timeout
        response = await self._send(body, asked, deadline)
        parts = response.aiter_bytes()
        try:
            return _Opened(response, parts, await self._http.read(parts, deadline, "first_byte"), deadline)
        except BaseException:
            await response.aclose()
            raise

    async def _send(self, body: bytes, asked: Asked, deadline: float) -> "httpx.Response":
        retries = Retries()
        while True:
            try:
                return await self._http.open(
                    "POST", "/api/chat", body, asked=asked, deadline=deadline, connect=CONNECT_TIMEOUT
                )
            except ModelError as error:
                pause = retries.pause_after(error)
                if pause is None:
                    raise
            await self._sleep(pause)

    async def _phase(self, model: str) -> Literal["loading", "reading"]:
        try:
            loaded = catalog.is_loaded(await self._discover("GET", "/api/ps"), model)
        except ModelError:
            return "reading"  # only a word on the screen hangs on it; the call itself reports what is wrong
        return "reading" if loaded else "loading"

    def _between_lines(self, request: ChatRequest) -> float:
        # While a call is being written the server keeps it back until it is whole: no token is seen for as
        # long as that takes, so the patience is the one for a model that reads.
        return max(self._first_byte_timeout, self._token_timeout) if offers_tools(request) else self._token_timeout

    def _forget(self) -> None:
        """Ask for the list again: it has changed."""
        self._listed = (-math.inf, [])

    async def _discover(self, method: str, path: str, body: bytes | None = None, *, model: str = "") -> dict[str, Any]:
        return await self._http.ask(method, path, body, model=model, within=_DISCOVERY, connect=_DISCOVERY_CONNECT)


@dataclass(frozen=True)
class _Opened:
    """An answer whose first bytes have come; `first` is None when it has none at all."""

    response: "httpx.Response"
    parts: AsyncIterator[bytes]
    first: bytes | None
    deadline: float


class _Silence:
    """How long nothing may come: until `first` before the first line that says something, `between`
    seconds after each one. Only waiting counts: a reader that takes its time is no silence of the server.
    """

    def __init__(self, first: float, between: float) -> None:
        self._now = asyncio.get_running_loop().time
        self._between = between
        self._since = self._now()
        self._left = first - self._since
        self.phase: Phase = "first_byte"

    def begin(self) -> float:
        """Begin to wait and return the deadline."""
        self._since = self._now()
        return self._since + self._left

    def end(self) -> None:
        """Something came, if only half a line."""
        self._left -= self._now() - self._since

    def heard(self, line: bytes) -> None:
        """Begin anew, unless the line is blank: a trickle of nothing is silence too."""
        if line.strip():
            self.phase = "token"
            self._left = self._between


async def _call_off(opening: "asyncio.Task[_Opened]", looking: "asyncio.Task[Any]") -> None:
    opening.cancel()
    looking.cancel()
    try:
        await asyncio.gather(opening, looking, return_exceptions=True)
    finally:  # a second cancel may end the wait, not what the wait is for
        if opening.done() and not opening.cancelled() and opening.exception() is None:
            await opening.result().response.aclose()
