import httpx
import pytest

from rune.errors import ModelError, ModelTimeoutError, ModelUnavailableError, ProtocolError, StreamBrokenError
from rune.models.wire.failures import TRANSLATED, from_httpx

REQUEST = httpx.Request("GET", "http://127.0.0.1:1")


def all_of(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*(all_of(child) for child in kind.__subclasses__()))


HTTPX_ERRORS = sorted(
    {
        kind
        for value in vars(httpx).values()
        if isinstance(value, type) and issubclass(value, Exception)
        for kind in all_of(value)
    },
    key=lambda kind: kind.__name__,
)


def made(kind: type[Exception]) -> Exception:
    if issubclass(kind, httpx.HTTPStatusError):
        return kind("said", request=REQUEST, response=httpx.Response(500, request=REQUEST))
    try:
        return kind("said")
    except TypeError:
        return kind()


@pytest.mark.parametrize("kind", HTTPX_ERRORS)
def test_every_error_of_httpx_has_a_row_and_becomes_one_of_ours(kind: type[Exception]) -> None:
    assert kind.__name__ in TRANSLATED
    ours = from_httpx(made(kind), phase="token", address="http://127.0.0.1:1")
    assert isinstance(ours, ModelError)
    assert "127.0.0.1" in ours.message


def test_no_row_is_left_over() -> None:
    assert set(TRANSLATED) == {kind.__name__ for kind in HTTPX_ERRORS}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), ModelUnavailableError),
        (httpx.ConnectTimeout(""), ModelUnavailableError),
        (httpx.ReadTimeout(""), ModelTimeoutError),
        (httpx.ReadError("reset"), StreamBrokenError),
        (httpx.RemoteProtocolError("peer closed connection without sending complete message body"), StreamBrokenError),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), StreamBrokenError),
        (httpx.RemoteProtocolError("illegal status line"), ProtocolError),
        (httpx.DecodingError("not gzip"), ProtocolError),
        (ConnectionResetError("reset"), StreamBrokenError),
        (RuntimeError("new kind"), ProtocolError),
    ],
)
def test_each_kind_of_error_becomes_its_own(error: Exception, kind: type[ModelError]) -> None:
    assert type(from_httpx(error, phase="token", address="http://h")) is kind


def test_a_later_child_of_a_known_error_arrives_as_its_parent() -> None:
    class NewTimeout(httpx.ReadTimeout):
        pass

    ours = from_httpx(NewTimeout("late"), phase="first_byte", address="http://h")
    assert isinstance(ours, ModelTimeoutError)
    assert ours.phase == "first_byte"
