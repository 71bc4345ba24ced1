"""HTTP with one model server: one kept-alive client, made on first use (models.md, rules 13, 14, 17)."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from rune.errors import BusyError, ModelError, ModelTimeoutError, ModelUnavailableError, Phase, StreamBrokenError
from rune.models.wire.endpoint import locality
from rune.models.wire.failures import from_httpx
from rune.models.wire.ndjson import decode_object
from rune.version import __version__

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT: Final = 5.0
IDLE_CONNECTION: Final = 60.0

_OK: Final = 200
_ANSWER_CAP: Final = 64 * 1024 * 1024
_ERROR_CAP: Final = 64 * 1024
_ERROR_TIMEOUT: Final = 5.0
_DRAIN: Final = 0.05
_LONGEST_WAIT: Final = 10  # digits

ClientFactory = Callable[[str], "httpx.AsyncClient"]


def make_client(base_url: str) -> "httpx.AsyncClient":
    """Build the one client of a transport.

    Without TLS for `http://`: loading the certificates costs 17 ms, and an empty context would refuse an
    `https://` rather than trust it. Proxies of the environment count for remote servers only: a SOCKS one
    makes httpx fail at construction. No redirect is followed.
    """
    import httpx  # noqa: PLC0415 - slow to import: not before the first call

    secure = base_url.startswith("https://")
    return httpx.AsyncClient(
        verify=True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        trust_env=locality(base_url) == "remote",
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
        limits=httpx.Limits(keepalive_expiry=IDLE_CONNECTION),
        headers={"User-Agent": f"rune/{__version__}", "Accept-Encoding": "identity"},
    )


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The call that a failure belongs to; tokens."""

    model: str
    estimated: int | None = None
    window: int | None = None


class Refusal(Protocol):
    """Types an answer that is not a 200: its status, the first bytes of its body, where a redirect leads ("")."""

    def __call__(self, status: int, body: bytes, *, asked: Asked, location: str = "") -> ModelError:
        """Return the typed error."""
        ...


class ServerHttp:
    """Requests to one server, with typed failures; `refusal` types what is no 200. `headers` go with each request.
    Deadlines are in the event loop's own time.
    """

    def __init__(
        self,
        base_url: str,
        *,
        refusal: Refusal,
        headers: Mapping[str, str] | None = None,
        client_factory: ClientFactory = make_client,
    ) -> None:
        self.url = base_url.rstrip("/")
        self._refusal = refusal
        self._headers = dict(headers or {})
        self._client_factory = client_factory
        self._client: httpx.AsyncClient | None = None

    async def ask(
        self, method: str, path: str, body: bytes | None = None, *, model: str = "", within: float, connect: float
    ) -> dict[str, Any]:
        """Return the JSON object that answers; seconds. A kept connection that went stale is tried once anew.

        Raises ModelError.
        """
        deadline = asyncio.get_running_loop().time() + within
        asked = Asked(model=model)
        response = await self.open_anew(method, path, body, asked=asked, deadline=deadline, connect=connect)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(response.aclose)
            return decode_object(await self._body(response, deadline, cap=_ANSWER_CAP))

    async def open_anew(
        self, method: str, path: str, body: bytes | None, *, asked: Asked, deadline: float, connect: float
    ) -> "httpx.Response":
        """Send a request that may be sent twice: as `open`, and once more where a kept connection went stale."""
        try:
            return await self.open(method, path, body, asked=asked, deadline=deadline, connect=connect)
        except StreamBrokenError:
            return await self.open(method, path, body, asked=asked, deadline=deadline, connect=connect)

    async def open(
        self, method: str, path: str, body: bytes | None, *, asked: Asked, deadline: float, connect: float
    ) -> "httpx.Response":
        """Send a request and return its 200 with the body still to come; the caller closes it.

        A server may send not even the status line before the first token, so all waiting is in here. Raises
        ModelError: an answer that is not a 200, typed; no connection; nothing before `deadline`.
        """
        client = self._connected()
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        request = client.build_request(method, self.url + path, content=body, headers=headers)
        request.extensions["timeout"] = {"connect": connect}
        try:
            async with asyncio.timeout_at(deadline):
                response = await client.send(request, stream=True)
        except TimeoutError as error:
            raise self._silent("first_byte") from error
        except _foreign() as error:
            raise self._typed(error, "first_byte") from error
        if response.status_code == _OK:
            return response
        async with AsyncExitStack() as stack:
            stack.push_async_callback(response.aclose)
            said = await self._error_body(response)
            location = response.headers.get("location", "")[:200]
            error = self._refusal(response.status_code, said, asked=asked, location=location)
            if isinstance(error, BusyError):
                error.retry_after = _seconds(response.headers.get("retry-after", ""))
            raise error

    async def read(self, parts: AsyncIterator[bytes], deadline: float, phase: Phase) -> bytes | None:
        """Return the next bytes of a body, None at its end. Raises ModelError."""
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(parts, None)
        except TimeoutError as error:
            raise self._silent(phase) from error
        except _foreign() as error:
            raise self._typed(error, phase) from error

    async def drain(self, parts: AsyncIterator[bytes]) -> None:
        """Read the end of a body whose answer is proven whole: that keeps the connection for the next call. However
        it ends, the answer stays what it is.
        """
        deadline = asyncio.get_running_loop().time() + _DRAIN
        with suppress(ModelError):
            while await self.read(parts, deadline, "token") is not None:
                pass

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> "httpx.AsyncClient":
        if self._client is None:
            try:
                self._client = self._client_factory(self.url)
            except (ImportError, ValueError, OSError) as error:
                # A proxy in the environment that httpx cannot use, or certificates that cannot be read.
                raise ModelUnavailableError(
                    f"no connection to {self.url} can be made: {error}",
                    hint="Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE.",
                ) from error
        return self._client

    async def _body(self, response: "httpx.Response", deadline: float, *, cap: int) -> bytes:
        parts = response.aiter_bytes()
        body = bytearray()
        while (part := await self.read(parts, deadline, "token")) is not None:
            body += part
            if len(body) > cap:
                raise StreamBrokenError(f"{self.url} sent more than {cap:,} bytes")
        return bytes(body)

    async def _error_body(self, response: "httpx.Response") -> bytes:
        """Return the first bytes of an error's body: a status without its text is still an answer."""
        deadline = asyncio.get_running_loop().time() + _ERROR_TIMEOUT
        parts = response.aiter_bytes()
        body = b""
        while len(body) < _ERROR_CAP:
            try:
                part = await self.read(parts, deadline, "token")
            except ModelError:
                break
            if part is None:
                break
            body += part
        return body[:_ERROR_CAP]

    def _silent(self, phase: Phase) -> ModelTimeoutError:
        if phase == "token":
            return ModelTimeoutError(
                f"{self.url} went silent in mid-answer",
                phase=phase,
                hint="`model.token_timeout` sets how long to wait.",
            )
        return ModelTimeoutError(
            f"{self.url} gave no first token in time",
            phase=phase,
            hint="A large model may load for minutes: `model.first_byte_timeout` sets how long to wait.",
        )

    def _typed(self, error: Exception, phase: Phase) -> ModelError:
        return from_httpx(error, phase=phase, address=self.url)


def _seconds(text: str) -> float | None:
    """Return a `Retry-After` in seconds; None for none, and for a date, which no model server sends."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_WAIT else None


def _foreign() -> tuple[type[Exception], ...]:
    import httpx  # noqa: PLC0415 - loaded by the client already

    return (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict, OSError)
