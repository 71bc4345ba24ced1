"""A model that answers without any server: llama.cpp in a child process of Rune's own.

The worker is started on first use, again when another window is asked for, and again after it was
killed. It has one slot, so calls take turns. A call that is called off closes its connection; a worker that
has not fallen idle 100 ms later is killed, which is always safe: loading takes half a second.
"""

import asyncio
import hashlib
import importlib.util
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rune.errors import (
    CapabilityMissingError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    Phase,
)
from rune.models.catalog import STAND_IN
from rune.models.embedded.client import EmbeddedClient, open_client
from rune.models.embedded.gguf import read_header
from rune.models.embedded.model_file import SMOLLM2
from rune.models.embedded.process import INSTALL_HINT, Launch
from rune.models.embedded.wire import AnswerReader, chat_body
from rune.models.transport import Capability, ChatChunk, ChatRequest, LoadedModel, ModelInfo, Progress
from rune.records.traces import Dialect

if TYPE_CHECKING:
    import httpx

SMOLLM2_NAME = STAND_IN

_COUNTING_WINDOW = 8192
_CALL_OFF = 0.1
# As its authors recommend. Without the penalty it falls into loops and fills its window: of three prompts two
# ran to 400 tokens and on, with it all three ended by themselves. Not under a schema: JSON repeats its
# marks by nature, and with the penalty its strings become nonsense. The length is a guard for a person's patience,
# there too: a string has no end of its own, and of six constrained answers three ran to 1,900 tokens.
_SMOLLM2_SAMPLING = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 1024}
_SMOLLM2_AGAINST_LOOPS = {"repeat_penalty": 1.15, "repeat_last_n": 256}


def embedded_installed() -> bool:
    """Say whether the extra `embedded` is there, without importing it."""
    return importlib.util.find_spec("xllamacpp") is not None


class EmbeddedTransport:
    """ChatTransport for one GGUF file. Its one model is named `smollm2-135m-instruct`, or after the file.

    `log_path` takes what llama.cpp prints; `environ` is asked for XDG_RUNTIME_DIR. `threads` None: one for
    two cores; threads that wait for each other on busy cores are several times slower than fewer. Time-outs
    in seconds: between two events before the answer's first piece (loading, reading), and after it.
    """

    provider: str = "embedded"
    dialect: Dialect = "openai"

    def __init__(
        self,
        model_path: Path,
        *,
        log_path: Path,
        environ: Mapping[str, str] | None = None,
        threads: int | None = None,
        first_byte_timeout: float = 600.0,
        token_timeout: float = 60.0,
    ) -> None:
        self._path = model_path
        self._log_path = log_path
        self._environ = os.environ if environ is None else environ
        self._threads = threads
        self._timeouts: dict[Phase, float] = {"first_byte": first_byte_timeout, "token": token_timeout}
        self._info: ModelInfo | None = None
        self._client: EmbeddedClient | None = None
        self._slot = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._launch: asyncio.Task[EmbeddedClient] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    async def models(self) -> list[ModelInfo]:
        """List the one model. Raises ModelUnavailableError: no extra, no file, not a model file."""
        if not embedded_installed():
            raise ModelUnavailableError("the embedded model needs the extra `embedded`", hint=INSTALL_HINT)
        if self._info is None:
            self._info = await asyncio.to_thread(_describe_file, self._path)
        return [self._info]

    async def describe(self, model: str) -> ModelInfo:
        """Describe it from the file's header; no worker is started. Raises ModelNotFoundError too."""
        (info,) = await self.models()
        if model != info.name:
            raise ModelNotFoundError(f"the embedded model is {info.name!r}, not {model!r}", hint=f"Use -m {info.name}.")
        return info

    async def window_in_force(self, model: str) -> int | None:
        """Return the window of the loaded model, in tokens; None while none is loaded."""
        client = self._running()
        if client is None or self._info is None or model != self._info.name:
            return None
        return client.window

    async def loaded(self) -> list[LoadedModel]:
        """List the model while its worker runs; its size is the worker's memory, and none of it is on a GPU."""
        client = self._running()
        if client is None or self._info is None:
            return []
        return [LoadedModel(name=self._info.name, window=client.window, size=client.worker.memory(), on_gpu=0)]

    def memory(self) -> int | None:
        """Return the worker's resident memory in bytes; None while there is no worker."""
        client = self._running()
        return None if client is None else client.worker.memory()

    def worker_pid(self) -> int | None:
        """Return the worker's process id; None while there is no worker."""
        client = self._running()
        return None if client is None else client.worker.pid

    async def count(self, text: str) -> int:
        """Return how many tokens `text` is, exactly. Starts the worker where there is none."""
        await self.models()
        client = self._running()
        client = await self._ready(_COUNTING_WINDOW if client is None else client.worker.num_ctx)
        try:
            async with asyncio.timeout(self._timeouts["first_byte"]):
                return await client.count(text.encode("utf-8", "replace"))
        except TimeoutError as error:
            raise _late("first_byte", self._timeouts["first_byte"]) from error

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Raise CapabilityMissingError: it is a chat model."""
        raise CapabilityMissingError(model, "embedding")

    async def close(self) -> None:
        """End the worker and remove its socket; may be called twice. A running call ends with an error."""
        self._closed = True
        if self._launch is not None:
            self._launch.cancel()
            await asyncio.wait([self._launch])
        await self._discard(kill=False)
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """Stream one answer; a second call waits until the first has ended."""
        info = await self.describe(request.model)
        _check(request, info.capabilities)
        await self._slot.acquire()
        answer = AnswerReader(estimated=request.estimated)
        opened: tuple[EmbeddedClient, httpx.Response] | None = None
        try:
            if not self._serves(request.options.num_ctx):
                yield Progress(phase="loading", done=0, total=None)
            opened = client, response = await self._open(request)
            pieces, clock = response.aiter_bytes(), asyncio.get_running_loop()
            heard, events = clock.time(), 0
            while not answer.complete:
                piece = await self._next(client, pieces, phase="token" if answer.begun else "first_byte", since=heard)
                for chunk in answer.read(piece):
                    yield chunk
                if answer.events > events:  # comments that only keep the connection open are no progress
                    heard, events = clock.time(), answer.events
        except ModelError:
            for chunk in answer.held():
                yield chunk
            raise
        finally:
            await self._to_the_end(self._leave(opened, complete=answer.complete))

    async def _open(self, request: ChatRequest) -> "tuple[EmbeddedClient, httpx.Response]":
        (info,) = await self.models()
        body = chat_body(request, _sampling(info.name, constrained=request.format is not None))
        client = await self._ready(request.options.num_ctx)
        try:
            return client, await self._sent(client, body, request)
        except ModelUnavailableError:
            # It had died since its last answer. Nothing was shown, so starting it again is safe; once.
            client = await self._ready(request.options.num_ctx)
            return client, await self._sent(client, body, request)

    async def _sent(self, client: EmbeddedClient, body: bytes, request: ChatRequest) -> "httpx.Response":
        try:
            async with asyncio.timeout(self._timeouts["first_byte"]):
                return await client.open_answer(body, estimated=request.estimated)
        except TimeoutError as error:
            raise _late("first_byte", self._timeouts["first_byte"]) from error

    async def _next(self, client: EmbeddedClient, pieces: AsyncIterator[bytes], *, phase: Phase, since: float) -> bytes:
        """Return the next bytes. `since` is the loop's time at which something was last heard and taken."""
        try:
            async with asyncio.timeout_at(since + self._timeouts[phase]):
                return await client.next_piece(pieces, phase=phase)
        except TimeoutError as error:
            raise _late(phase, self._timeouts[phase]) from error

    async def _leave(self, opened: "tuple[EmbeddedClient, httpx.Response] | None", *, complete: bool) -> None:
        """Hang up, make sure that nothing is generated for nobody, and let the next call in."""
        try:
            if opened is not None:
                client, response = opened
                await client.hang_up(response)
            client = self._client
            if not complete and client is not None and not await client.idle(within=_CALL_OFF):
                await self._discard(kill=True)
        finally:
            self._slot.release()

    def _running(self) -> EmbeddedClient | None:
        return self._client if self._client is not None and self._client.worker.alive else None

    def _serves(self, num_ctx: int) -> bool:
        client = self._running()
        return client is not None and client.worker.num_ctx == num_ctx

    async def _ready(self, num_ctx: int) -> EmbeddedClient:
        """Return a worker with that window, started now if need be. Cancelling this kills one that still loads."""
        async with self._starting:
            client = self._running()
            if client is not None and client.worker.num_ctx == num_ctx:
                return client
            if self._closed:
                raise ModelUnavailableError("the embedded model was closed")
            self._launch = asyncio.create_task(self._start(num_ctx))
            try:
                async with asyncio.timeout(self._timeouts["first_byte"]):
                    return await self._launch
            except TimeoutError as error:
                raise _late("first_byte", self._timeouts["first_byte"]) from error
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                raise ModelUnavailableError("the embedded model was closed while it loaded") from error
            finally:
                self._launch = None

    async def _start(self, num_ctx: int) -> EmbeddedClient:
        await self._discard(kill=False)
        launch = Launch(
            model=self._path,
            num_ctx=num_ctx,
            log_path=self._log_path,
            environ=self._environ,
            threads=self._threads,
        )
        self._client = await open_client(launch)
        return self._client

    async def _discard(self, *, kill: bool) -> None:
        client, self._client = self._client, None
        if client is not None:
            await self._to_the_end(client.aclose(kill=kill))

    async def _to_the_end(self, work: Coroutine[object, object, None]) -> None:
        """Do this even if the caller is cancelled meanwhile: a worker must not be left to itself."""
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        await asyncio.shield(task)


def _check(request: ChatRequest, capabilities: frozenset[Capability]) -> None:
    if request.tools != b"[]" and "tools" not in capabilities:
        raise CapabilityMissingError(request.model, "tools")
    if request.think not in {None, "off"} and "thinking" not in capabilities:
        raise CapabilityMissingError(request.model, "thinking")


def _late(phase: Phase, seconds: float) -> ModelTimeoutError:
    return ModelTimeoutError(f"the embedded model said nothing for {seconds:g} s", phase=phase)


def _describe_file(path: Path) -> ModelInfo:
    header = read_header(path)
    status = path.stat()
    known = path.name == SMOLLM2.file_name and status.st_size == SMOLLM2.size
    # A template that never names them cannot show them to the model, whatever a request says.
    marks: tuple[tuple[Capability, str], ...] = (("tools", "tools"), ("thinking", "enable_thinking"))
    capabilities: set[Capability] = {"chat", *(name for name, mark in marks if mark in header.chat_template)}
    # Hashing gigabytes only to list a model is not worth it: a foreign file is named by where and when it is.
    place = f"{path.absolute()}\n{status.st_size}\n{status.st_mtime_ns}"
    return ModelInfo(
        name=SMOLLM2_NAME if known else path.stem.lower(),
        provider="embedded",
        capabilities=frozenset(capabilities),
        context_length=header.context_length,
        size=status.st_size,
        parameters=header.size_label,
        quantisation=header.quantisation,
        digest=SMOLLM2.sha256 if known else f"stat:{hashlib.sha256(os.fsencode(place)).hexdigest()}",
        family=header.architecture,
    )


def _sampling(model: str, *, constrained: bool) -> dict[str, float]:
    if model != SMOLLM2_NAME:
        return {}
    return _SMOLLM2_SAMPLING if constrained else _SMOLLM2_SAMPLING | _SMOLLM2_AGAINST_LOOPS
