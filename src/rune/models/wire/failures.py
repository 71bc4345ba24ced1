"""The one door through which httpx's errors become ours (architecture.md, style 16)."""

from collections.abc import Callable, Mapping
from typing import Final

from rune.errors import ModelError, ModelTimeoutError, ModelUnavailableError, Phase, ProtocolError, StreamBrokenError

_START: Final = "Is the model server running? For Ollama: `ollama serve`."
_SAYS_NO_MORE: Final = ("all connection attempts failed", "peer closed connection", "server disconnected")
_ADDRESS: Final = "Check the address in OLLAMA_HOST or `model.host`."


def from_httpx(error: Exception, *, phase: Phase, address: str) -> ModelError:
    """Translate whatever httpx raised while it spoke to `address`; `phase` is how far the call was.

    The nearest class in the error's own line of descent decides; a kind that httpx adds later arrives as
    its parent. Raise the result `from error`.
    """
    for kind in type(error).__mro__:
        make = TRANSLATED.get(kind.__name__)
        if make is not None and kind.__module__.split(".")[0] == "httpx":
            return make(error, phase, address)
    if isinstance(error, OSError):  # a socket's own, should httpx ever let one through
        return _broken(error, phase, address)
    return ProtocolError(f"{address}: {_words(error)}")


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _reason(error: Exception) -> str:
    """Return what the library adds, in brackets; nothing where it only says in its own words what was just said."""
    said = _words(error)
    return "" if any(words in said.lower() for words in _SAYS_NO_MORE) else f" ({said})"


def _unreachable(error: Exception, _: Phase, address: str) -> ModelError:
    return ModelUnavailableError(f"nobody answers at {address}{_reason(error)}", hint=_START)


def _bad_address(error: Exception, _: Phase, address: str) -> ModelError:
    return ModelUnavailableError(f"{address} cannot be reached ({_words(error)})", hint=_ADDRESS)


def _late(error: Exception, phase: Phase, address: str) -> ModelError:
    return ModelTimeoutError(f"{address} was silent for too long ({type(error).__name__})", phase=phase)


def _no_connection_free(_: Exception, __: Phase, address: str) -> ModelError:
    return ModelTimeoutError(f"no connection to {address} became free", phase="connect")


def _broken(error: Exception, phase: Phase, address: str) -> ModelError:
    when = "in mid-answer" if phase == "token" else "before it answered"
    return StreamBrokenError(f"{address} closed the connection {when}{_reason(error)}")


def _not_http(error: Exception, phase: Phase, address: str) -> ModelError:
    # httpx has one class for a peer that hangs up and for one that does not speak HTTP.
    if any(words in str(error).lower() for words in ("peer closed", "disconnected", "connectionterminated")):
        return _broken(error, phase, address)
    return ProtocolError(f"{address} does not speak HTTP as it should ({_words(error)})", hint=_ADDRESS)


def _misused(error: Exception, _: Phase, address: str) -> ModelError:
    return ProtocolError(f"{address}: {_words(error)}")


TRANSLATED: Final[Mapping[str, Callable[[Exception, Phase, str], ModelError]]] = {
    "ConnectError": _unreachable,
    "ConnectTimeout": _unreachable,
    "ProxyError": _unreachable,
    "InvalidURL": _bad_address,
    "UnsupportedProtocol": _bad_address,
    "PoolTimeout": _no_connection_free,
    "ReadTimeout": _late,
    "WriteTimeout": _late,
    "TimeoutException": _late,
    "ReadError": _broken,
    "WriteError": _broken,
    "CloseError": _broken,
    "NetworkError": _broken,
    "StreamClosed": _broken,
    "RemoteProtocolError": _not_http,
    "LocalProtocolError": _misused,
    "ProtocolError": _not_http,
    "DecodingError": _misused,
    "TooManyRedirects": _misused,
    "HTTPStatusError": _misused,
    "StreamConsumed": _misused,
    "ResponseNotRead": _misused,
    "RequestNotRead": _misused,
    "StreamError": _misused,
    "CookieConflict": _misused,
    "TransportError": _broken,
    "RequestError": _broken,
    "HTTPError": _broken,
}
"""One row for each error that httpx has, by its name: httpx itself is loaded late."""
