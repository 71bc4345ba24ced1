"""One server that speaks OpenAI's wire, by its URL and key (models.md: ChatTransport)."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rune.errors import (
    BusyError,
    CapabilityMissingError,
    ModelError,
    ModelNotFoundError,
    Phase,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.openai_compatible import catalog
from rune.models.openai_compatible.address import ServerAddress
from rune.models.openai_compatible.failures import ServerWords, is_loading, refused_fields
from rune.models.openai_compatible.wire import chat_body, chat_fields, embed_body, read_vectors
from rune.models.transport import ChatChunk, ChatRequest, Completed, LoadedModel, ModelInfo, Progress
from rune.models.truncation import truncated, was_cut
from rune.models.wire.chat_events import ChatAnswer
from rune.models.wire.chat_failures import Said
from rune.models.wire.chat_request import offers_tools
from rune.models.wire.http import CONNECT_TIMEOUT, Asked, ClientFactory, ServerHttp, make_client
from rune.models.wire.retries import Retries
from rune.records.traces import Dialect
from rune.records.usage import Usage

if TYPE_CHECKING:
    import httpx

# Discovery asks what is there; a server that is there answers at once.
_DISCOVERY_CONNECT: Final = 1.0
_DISCOVERY: Final = 4.0
_LOADING_PAUSE: Final = 1.0
# Whoever chooses a model lists all of them and then describes one: so soon, the list is the same.
_FRESH: Final = 1.0
_BODY_CAP: Final = 64 * 1024 * 1024

Sleep = Callable[[float], Awaitable[None]]


class OpenAITransport:
    """ChatTransport for one server. Time-outs in seconds: until the first piece of an answer, and between pieces.

    `sleep` waits between the few tries that there are, all before any byte of an answer: a connection refused or cut,
    once; a busy server twice, after as long as it says if that is short; one that loads its model until the first
    time-out is over. A server that does not take the fields which only some servers know is asked without them, and
    from then on always.
    """

    def __init__(
        self,
        address: ServerAddress,
        *,
        first_byte_timeout: float = 600.0,
        token_timeout: float = 60.0,
        client_factory: ClientFactory = make_client,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._address = address
        self._words = ServerWords(address)
        self._http = _Http(address, self._words, client_factory)
        self._first_byte_timeout = first_byte_timeout
        self._token_timeout = token_timeout
        self._sleep = sleep
        self._listed: tuple[float, list[catalog.Served]] = (-math.inf, [])
        self._refused: frozenset[str] = frozenset()
        self._is_studio: bool | None = None

    @property
    def provider(self) -> str:
        """The server's name: `openai-compatible`, or the one that config.yaml gives it."""
        return self._address.name

    @property
    def dialect(self) -> Dialect:
        """`openai`."""
        return "openai"

    async def models(self) -> list[ModelInfo]:
        """List what the server offers; `chat` is a guess for a model of which it says nothing.

        Raises ModelUnavailableError when nobody answers, else another ModelError.
        """
        return [served.info for served in await self._list()]

    async def describe(self, model: str) -> ModelInfo:
        """Describe one model, as the list does. Raises ModelNotFoundError, ModelUnavailableError."""
        return (await self._find(model)).info

    async def window_in_force(self, model: str) -> int | None:
        """Return the window that the server has loaded the model with, in tokens; None where it does not say."""
        await self._list()
        return (await self._find(model)).window

    async def loaded(self) -> list[LoadedModel]:
        """List what the server says is in memory; empty where it does not say. Raises ModelUnavailableError."""
        return [loaded for served in await self._list() if (loaded := served.as_loaded()) is not None]

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order. Raises CapabilityMissingError where the model or the server has none,
        ContextTruncatedError for a text over its window, ProtocolError when the counts do not agree.
        """
        if not texts:
            return []
        try:
            answer = await self._http.ask(
                "POST",
                f"{self._address.prefix}/embeddings",
                embed_body(self._model_id(model), texts),
                model=model,
                within=self._first_byte_timeout,
                connect=CONNECT_TIMEOUT,
            )
        except ServerError as error:
            if error.status in {HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
                raise CapabilityMissingError(model, "embedding") from error
            raise
        return read_vectors(answer, expected=len(texts))

    async def close(self) -> None:
        """Close the connections; may be called twice, and a later call opens new ones."""
        await self._http.close()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        """Stream one answer (see `ChatTransport.chat`). Closing the iterator closes the connection at once."""
        deadline = self._now() + self._first_byte_timeout
        yield Progress("reading", 0, request.estimated)
        while True:
            try:
                response = await self._open(request, deadline)
                break
            except BusyError as error:
                if not is_loading(error) or self._now() + _LOADING_PAUSE > deadline:
                    raise
            yield Progress("loading", 0, None)
            await self._sleep(_LOADING_PAUSE)
        answer = ChatAnswer(partial(self._failed, request, lambda: answer.begun))
        try:
            async with aclosing(self._answer(response, answer, request, deadline)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, Completed):
                        self._check_read(request, chunk.usage)
                    yield chunk
        except ModelError:
            for chunk in answer.held():
                yield chunk
            raise
        finally:
            await response.aclose()

    async def _answer(
        self, response: "httpx.Response", answer: ChatAnswer, request: ChatRequest, deadline: float
    ) -> AsyncGenerator[ChatChunk]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in {"text/html", "application/xhtml+xml"}:
            raise ProtocolError("the answer is a web page", hint=f"Is {self._address.url} a server of chat models?")
        # The first time-out began with the call, not with the status line.
        parts, heard, events, unsaid = response.aiter_bytes(), deadline - self._first_byte_timeout, 0, 0
        if kind == "application/json":
            body = await self._whole(parts, deadline)
            for chunk in answer.take(body):
                yield chunk
            parts = _nothing()
        while not answer.complete:
            phase: Phase = "token" if answer.begun else "first_byte"
            part = await self._http.read(parts, heard + self._patience(phase, request), phase)
            for chunk in answer.ended() if part is None else answer.read(part):
                if isinstance(chunk, Completed):
                    await self._http.drain(parts)
                unsaid = 0
                yield chunk
            unsaid += len(part or b"")
            if unsaid > _BODY_CAP:
                raise ProtocolError(f"{self._address.url} sent {unsaid:,} bytes and nothing of an answer")
            if answer.events > events:  # comments that only keep the connection open are no progress
                heard, events = self._now(), answer.events

    async def _whole(self, parts: AsyncIterator[bytes], deadline: float) -> bytes:
        """Return the body of a server that does not stream, or of an error under a 200."""
        body = bytearray()
        while (part := await self._http.read(parts, deadline, "first_byte")) is not None:
            body += part
            if len(body) > _BODY_CAP:
                raise StreamBrokenError(f"{self._address.url} sent more than {_BODY_CAP:,} bytes")
        return bytes(body)

    async def _open(self, request: ChatRequest, deadline: float) -> "httpx.Response":
        """Send the call, without the fields that the server does not take; remember which those are."""
        model_id = self._model_id(request.model)
        llama = any(served.is_llama for served in self._listed[1])
        named = msgspec.structs.replace(request, model=model_id)
        asked = Asked(model=request.model, estimated=request.estimated)
        refused = self._refused
        while True:
            fields = chat_fields(request, llama=llama)
            fields = {name: value for name, value in fields.items() if name not in refused}
            try:
                response = await self._send(chat_body(named, fields), asked, deadline)
            except ServerError as error:
                more = refused_fields(error, frozenset(fields))
                if not more:
                    raise
                refused |= more
            else:
                self._refused |= refused
                return response

    async def _send(self, body: bytes, asked: Asked, deadline: float) -> "httpx.Response":
        retries = Retries()
        path = f"{self._address.prefix}/chat/completions"
        while True:
            try:
                return await self._http.open(
                    "POST", path, body, asked=asked, deadline=deadline, connect=CONNECT_TIMEOUT
                )
            except ModelError as error:
                # One that loads its model is waited for elsewhere, for as long as that takes.
                loads = isinstance(error, BusyError) and is_loading(error)
                pause = None if loads else retries.pause_after(error)
                if pause is None:
                    raise
            await self._sleep(pause)

    def _failed(self, request: ChatRequest, begun: Callable[[], bool], said: Said) -> ModelError:
        return self._words.from_stream(
            said, begun=begun(), asked=Asked(model=request.model, estimated=request.estimated)
        )

    def _check_read(self, request: ChatRequest, usage: Usage) -> None:
        """Raise ContextTruncatedError where the count betrays that the server cut the prompt to its own window."""
        window = next((each.window for each in self._listed[1] if each.is_named(request.model)), None)
        served = usage.prompt_tokens
        if window is not None and served is not None and was_cut(request.estimated, served, window):
            raise truncated(estimated=request.estimated, served=served, window=window)

    def _patience(self, phase: Phase, request: ChatRequest) -> float:
        if phase == "first_byte":
            return self._first_byte_timeout
        # Servers hold a call back until it is whole: no token is seen for as long as that takes, so the patience is
        # the one for a model that reads.
        return max(self._first_byte_timeout, self._token_timeout) if offers_tools(request) else self._token_timeout

    async def _list(self) -> list[catalog.Served]:
        """Ask what there is, all of it within one time-out."""
        deadline = self._now() + _DISCOVERY
        answer = await self._discover(f"{self._address.prefix}/models", deadline)
        found = catalog.read_models(answer, provider=self.provider, remote=self._address.locality == "remote")
        if len(found) == 1 and found[0].is_llama:
            found = [catalog.with_props(found[0], await self._besides("/props", deadline))]
        elif self._may_be_studio(found):
            told = await self._besides("/api/v0/models", deadline)
            found = [catalog.with_studio(served, told) for served in found]
        self._listed = self._now(), found
        return found

    def _may_be_studio(self, found: list[catalog.Served]) -> bool:
        local = self._address.locality != "remote" and self._address.is_versioned
        return local and self._is_studio is not False and not all(served.is_told for served in found)

    async def _besides(self, path: str, deadline: float) -> dict[str, Any]:
        """Return what a server says beside the list; empty where it has no such page."""
        try:
            return await self._discover(path, deadline)
        except ServerError as error:
            if error.status == HTTPStatus.NOT_FOUND and path.startswith("/api/"):
                self._is_studio = False
            return {}
        except ModelError:
            return {}  # it would only have told more of what the list says already

    async def _discover(self, path: str, deadline: float) -> dict[str, Any]:
        return await self._http.ask("GET", path, within=max(0.0, deadline - self._now()), connect=_DISCOVERY_CONNECT)

    async def _find(self, model: str) -> catalog.Served:
        asked, found = self._listed
        if self._now() - asked > _FRESH:
            found = await self._list()
        served = next((each for each in found if each.is_named(model)), None)
        if served is None:
            raise ModelNotFoundError(f"{self.provider} has no model {model!r}", hint="See what it has with /model.")
        return served

    def _model_id(self, model: str) -> str:
        """Return a model's name on the wire."""
        known = (each.model_id for each in self._listed[1] if each.is_named(model))
        return next(known, model.removeprefix(f"{self.provider}/"))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _Http(ServerHttp):
    """HTTP with this server; its errors name the setting that holds its address."""

    def __init__(self, address: ServerAddress, words: ServerWords, client_factory: ClientFactory) -> None:
        super().__init__(
            address.root, refusal=words.from_status, headers=address.headers(), client_factory=client_factory
        )
        self._hint = f"Is {address.name} running, and is {address.url} its address?"

    def _typed(self, error: Exception, phase: Phase) -> ModelError:
        typed = super()._typed(error, phase)
        if typed.hint:
            typed.hint = self._hint
        return typed


async def _nothing() -> AsyncIterator[bytes]:
    for part in ():
        yield part
