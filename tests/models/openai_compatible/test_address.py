"""Where a server is, and where its key may go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ConfigError
from rune.models.openai_compatible.address import ServerAddress

KEY = "key-0123456789"


@pytest.mark.parametrize(
    ("text", "url", "root"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
        (" 'http://127.0.0.1:8080/v1/' ", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
        ("HTTPS://API.Example.com/v1", "https://api.example.com:443/v1", "https://api.example.com:443"),
        ("https://h.example/api/v1", "https://h.example:443/api/v1", "https://h.example:443/api"),
        ("http://[::1]:9/other", "http://[::1]:9/other", "http://[::1]:9/other"),
        ("http://0.0.0.0:1", "http://127.0.0.1:1/v1", "http://127.0.0.1:1"),
    ],
)
def test_an_address_without_a_path_is_v1(text: str, url: str, root: str) -> None:
    address = ServerAddress.checked(text, source="S")
    assert (address.url, address.root, address.root + address.prefix) == (url, root, url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:8080",
        "localhost",
        "ftp://h/v1",
        "http://me:secret@h/v1",
        "http://h/v1?key=x",
        "http://h:0",
        "http://a b",
    ],
)
def test_what_is_no_address_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError, match="S") as caught:
        ServerAddress.checked(text, source="S")
    assert "http(s)://" in caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["https://api.example.com/v1", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "http://192.168.1.4:1",
     "http://lab:8000", "http://box.local:1", "http://10.0.0.2/v1"],
)  # fmt: skip
def test_a_key_goes_over_tls_or_within_ones_own_network(url: str) -> None:
    assert ServerAddress.checked(url, source="S", key=KEY).headers() == {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("url", ["http://api.example.com/v1", "http://8.8.8.8:1", "http://134744072/v1"])
def test_a_key_never_goes_in_the_clear_to_a_remote_server(url: str) -> None:
    with pytest.raises(ConfigError, match="readable for everybody") as caught:
        ServerAddress.checked(url, source="S", key=KEY, key_variable="LAB_KEY")
    assert "LAB_KEY" in caught.value.hint
    assert KEY not in str(caught.value)
    assert ServerAddress.checked(url, source="S").headers() == {}


@given(st.text(min_size=1))
def test_a_key_is_used_as_it_is_or_refused_without_being_shown(key: str) -> None:
    try:
        address = ServerAddress.checked("http://127.0.0.1:1", source="S", key=f"sk-{key}-0123456789")
    except ConfigError as error:
        assert "-0123456789" not in f"{error} {error.hint}"
    else:
        assert "-0123456789" not in f"{address!r} {address}"
        assert all(" " < char < "\x7f" for char in address.key)
