"""Fetching and removing models: `/api/pull` and `/api/delete`."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from rune.errors import ModelError, ModelNotFoundError, ProtocolError, ServerError, StreamBrokenError
from rune.models.ollama.failures import typed, unwrap
from rune.models.transport import PullProgress
from rune.models.wire.http import CONNECT_TIMEOUT, Asked, ServerHttp
from rune.models.wire.ndjson import LineSplitter, decode_object

SUCCESS: Final = "success"

_REMOVAL: Final = 60.0
_SHOWN: Final = 200
_NOT_IN_THE_LIBRARY: Final = re.compile(r"file does not exist|manifest unknown|model .*not found", re.IGNORECASE)


async def pull(http: ServerHttp, model: str, *, silence: float) -> AsyncGenerator[PullProgress]:
    """Fetch a model (see `ModelLibrary.pull`). Nothing for `silence` seconds is a time-out: a large part is verified
    without a word. Only the status `success` proves that all of it is there; the server keeps the parts it has.
    """
    async with AsyncExitStack() as stack:
        asked = Asked(model=model)
        try:
            response = await http.open_anew(
                "POST",
                "/api/pull",
                msgspec.json.encode({"model": model, "stream": True}),
                asked=asked,
                deadline=_in(silence),
                connect=CONNECT_TIMEOUT,
            )
        except ServerError as error:
            raise _refused(error, model) from error
        stack.push_async_callback(response.aclose)
        parts, splitter, deadline = response.aiter_bytes(), LineSplitter(), _in(silence)
        while (part := await http.read(parts, deadline, "token")) is not None:
            for progress in _read(splitter, part, asked):
                yield progress
                if progress.status == SUCCESS:
                    return
                deadline = _in(silence)  # blank lines are silence too
        for progress in _unfinished(splitter, asked):
            yield progress
            if progress.status == SUCCESS:
                return
    raise StreamBrokenError(
        f"fetching {model} broke off before the server said that all of it is there",
        hint="Fetch it again: what has come is kept.",
    )


async def remove(http: ServerHttp, model: str) -> None:
    """Remove a model from the server's disk. Raises ModelNotFoundError, ModelUnavailableError, another ModelError."""
    deadline = _in(_REMOVAL)
    response = await http.open_anew(
        "DELETE",
        "/api/delete",
        msgspec.json.encode({"model": model}),
        asked=Asked(model=model),
        deadline=deadline,
        connect=CONNECT_TIMEOUT,
    )
    await response.aclose()


def _in(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def _read(splitter: LineSplitter, part: bytes, asked: Asked) -> Iterator[PullProgress]:
    for line in splitter.feed(part):
        if line.strip():
            yield _progress(line, splitter.number, asked)


def _unfinished(splitter: LineSplitter, asked: Asked) -> Iterator[PullProgress]:
    """Give the last line when it only lacks its newline; half a line says nothing."""
    rest = splitter.rest()
    if rest is None or not rest.strip():
        return
    try:
        decode_object(rest)
    except ProtocolError:
        return  # a line that was cut: that the whole broke off is what is raised
    yield _progress(rest, splitter.number, asked)


def _progress(line: bytes, number: int, asked: Asked) -> PullProgress:
    fields = decode_object(line, number=number)
    if fields.get("error") is not None:
        failure = typed(unwrap(fields), status=0, phase="token", asked=asked)
        raise _refused(failure, asked.model) if isinstance(failure, ServerError) else failure
    status = fields.get("status")
    if not isinstance(status, str) or not status:
        raise ProtocolError(f"a line without a status: {', '.join(fields)[:80] or 'empty object'}", line=number)
    total = _bytes(fields, "total")
    done = _bytes(fields, "completed")
    digest = fields.get("digest")
    return PullProgress(
        status=status[:_SHOWN],
        part=digest[:_SHOWN] if isinstance(digest, str) else "",
        # The server leaves zeros out: a part whose size is known and whose progress is missing has just begun.
        done=0 if done is None and total is not None else done,
        total=total,
    )


def _bytes(fields: dict[str, Any], key: str) -> int | None:
    figure = fields.get(key)
    return figure if type(figure) is int and figure >= 0 else None


def _refused(error: ServerError, model: str) -> ModelError:
    if _NOT_IN_THE_LIBRARY.search(error.text):
        return ModelNotFoundError(
            f"there is no model {model!r} to fetch", hint="Check its name and tag at ollama.com/library."
        )
    return ServerError(
        error.text,
        status=error.status,
        phase="first_byte" if error.status else "token",
        hint=error.hint or "The server fetches it, not Rune: check its network and its free disk space.",
    )
