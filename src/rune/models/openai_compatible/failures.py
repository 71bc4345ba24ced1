"""What these servers say when they cannot answer, as typed errors that name the setting to change."""

import re
from http import HTTPStatus
from typing import Final

import msgspec

from rune.errors import (
    BusyError,
    CallCancelledError,
    ModelError,
    ModelNotFoundError,
    Phase,
    ServerError,
)
from rune.models.openai_compatible.address import ServerAddress
from rune.models.wire.chat_failures import TEXT_SHOWN, Said, missing_capability, overflow, read_body
from rune.models.wire.http import Asked

_NO_SUCH_MODEL: Final = re.compile(
    r"model_not_found|\bmodel\b.*\b(not found|does not exist|not exist)\b|no such model|invalid model name",
    re.IGNORECASE | re.DOTALL,
)
_OUT_OF_CREDIT: Final = re.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)
_BUSY: Final = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, 529}  # the last is no status of HTTP: overloaded
)
_CALLED_OFF: Final = 499
_REFUSED_FIELDS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
_ABOUT_FIELDS: Final = re.compile(
    r"unknown|unrecogni[sz]ed|unexpected|extra|additional|unsupported|not (permitted|allowed|supported)|invalid field",
    re.IGNORECASE,
)


class ServerWords:
    """Types what one server says; its key is taken out of everything first."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    def from_status(self, status: int, body: bytes, *, asked: Asked, location: str = "") -> ModelError:
        """Type an answer that is not a 200; its body may be JSON, text, a web page or nothing."""
        # Before the text is cut to be shown, which might leave half a key.
        said = read_body(self._address.without_key(body.decode("utf-8", "replace")).encode())
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            target = self._address.without_key(location) or "another address"
            text = f"it redirects to {target}, which Rune does not follow"
            return ServerError(
                text, status=status, phase="first_byte", hint=f"Set {self._address.name}'s URL to the final address."
            )
        return self._typed(said, status, phase="first_byte", asked=asked)

    def from_stream(self, said: Said, *, begun: bool, asked: Asked) -> ModelError:
        """Type an error that stands in a running stream."""
        return self._typed(said, 0, phase="token" if begun else "first_byte", asked=asked)

    def _typed(self, said: Said, status: int, *, phase: Phase, asked: Asked) -> ModelError:
        said = msgspec.structs.replace(said, text=self._address.without_key(said.text)[:TEXT_SHOWN])
        found = overflow(said, asked) or missing_capability(said, asked)
        if found is not None:
            return found
        named = status or said.status
        kind = f"{said.kind} {said.text}"
        if asked.model and named < HTTPStatus.INTERNAL_SERVER_ERROR and _NO_SUCH_MODEL.search(kind):
            return ModelNotFoundError(
                f"{self._address.name} has no model {asked.model!r}", hint="See what it has with /model."
            )
        if named in _BUSY and not _OUT_OF_CREDIT.search(kind):
            return BusyError(f"{self._address.name} is busy{': ' if said.text else ''}{said.text}")
        if named == _CALLED_OFF:
            return CallCancelledError(said.text or "the server says that the call was cancelled")
        hint = self._hint(said, named)
        # Where the settings are to blame it must be plain which server this is: there may be several.
        text = f"{said.text} ({self._address.url})" if hint and said.text else said.text
        return ServerError(text, status=status, phase=phase, hint=hint)

    def _hint(self, said: Said, status: int) -> str:
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return self._key_hint()
        if status == HTTPStatus.NOT_FOUND:
            return self._route_hint()
        if status in _BUSY:
            return f"Whoever owns the key of {self._address.key_variable} must pay for more."
        return "" if said.structured else f"Is {self._address.url} a server of chat models?"

    def _key_hint(self) -> str:
        address = self._address
        if not address.key_variable:
            return f"It wants a key: name the variable that holds it with `key_env` at {address.name} in config.yaml."
        if address.key:
            return f"The key in {address.key_variable} is not one that it takes."
        return f"It wants a key: put it into the environment variable {address.key_variable}."

    def _route_hint(self) -> str:
        address = self._address
        if address.is_versioned:
            return f"Is {address.url} a server of chat models?"
        return f"Is `/v1` missing at the end of {address.url}?"


def is_loading(error: BusyError) -> bool:
    """Whether a server is busy only because it still loads its model."""
    return "loading" in error.message.lower()


def refused_fields(error: ModelError, sent: frozenset[str]) -> frozenset[str]:
    """Return which of the extra fields in `sent` a server did not take; empty when that is not what it says.

    A server that complains of fields without naming one of them may mean any.
    """
    if not isinstance(error, ServerError) or error.status not in _REFUSED_FIELDS or not sent:
        return frozenset()
    named = frozenset(name for name in sent if name in error.text)
    return named or (sent if not error.text or _ABOUT_FIELDS.search(error.text) else frozenset())
