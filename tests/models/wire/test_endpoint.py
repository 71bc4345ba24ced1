import pytest

from rune.errors import ConfigError
from rune.models.wire.endpoint import Locality, is_loopback, locality, ollama_base_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("   ", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        ("1.2.3.4:1234", "http://1.2.3.4:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("example.com", "http://example.com:11434"),
        ("example.com:1234", "http://example.com:1234"),
        ("Example.COM", "http://example.com:11434"),
        ("http://1.2.3.4", "http://1.2.3.4:80"),
        ("https://1.2.3.4", "https://1.2.3.4:443"),
        ("HTTPS://1.2.3.4", "https://1.2.3.4:443"),
        ("https://1.2.3.4:1234", "https://1.2.3.4:1234"),
        ("http://:1234", "http://127.0.0.1:1234"),
        ("https://example.com/ollama", "https://example.com:443/ollama"),
        ("https://example.com/ollama/", "https://example.com:443/ollama"),
        ("https://example.com:1234/a/b", "https://example.com:1234/a/b"),
        ("example.com/ollama", "http://example.com:11434/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:1337", "http://[::1]:1337"),
        ("::1", "http://[::1]:11434"),
        ("http://[::1]", "http://[::1]:80"),
        ("[fe80::1]:11434", "http://[fe80::1]:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - read, not bound
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("http://0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:11434"),
        ("[::]:11434", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
        (" 1.2.3.4 ", "http://1.2.3.4:11434"),
        ('"1.2.3.4"', "http://1.2.3.4:11434"),
        ("'1.2.3.4'", "http://1.2.3.4:11434"),
        (' " 1.2.3.4 " ', "http://1.2.3.4:11434"),
        ("http://1.2.3.4:4321", "http://1.2.3.4:4321"),
        (' "1.2.3.4" ', "http://1.2.3.4:11434"),
        ("'1.2.3.4:5'", "http://1.2.3.4:5"),
        ("'  example.com '", "http://example.com:11434"),
        ("ollama.com", "https://ollama.com:443"),
        ("ollama.com:8080", "http://ollama.com:8080"),
        ("http://ollama.com", "http://ollama.com:80"),
        ("my_box", "http://my_box:11434"),
        ("http://", "http://127.0.0.1:80"),
        ("1.2.3.4:", "http://1.2.3.4:11434"),
        ("1.2.3.4:65535", "http://1.2.3.4:65535"),
    ],
)  # fmt: skip
def test_an_address_is_read_as_ollamas_own_client_reads_it(text: str, url: str) -> None:
    assert ollama_base_url(text) == url
    assert ollama_base_url(url) == url


@pytest.mark.parametrize(
    "text",
    [
        ":0", ":66000", ":-1",
        "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:x", "1.2.3.4:\uff11", "ftp://1.2.3.4", "unix:///run/o.sock",
        "http://user:word@host", "host name", "http://h?x=1", "http://h#x", "http://h/a?x=1", "http://h/a#x",
        "http://h/a b", "http://h/a\\b", "[::1", "[::1]x", "::g",
        "-host", "http://a\\b", "a\nb", "héllo", "//h", "1.2.3.4:99999999999999999999",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_a_config_error_that_names_its_source(text: str) -> None:
    with pytest.raises(ConfigError, match="OLLAMA_HOST") as caught:
        ollama_base_url(text)
    assert caught.value.key == "OLLAMA_HOST"
    with pytest.raises(ConfigError, match=r"model\.host"):
        ollama_base_url(text, source="model.host")


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        ollama_base_url("http://me:hunter2@host")
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_a_key_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError, match="has no place in an address") as caught:
        ollama_base_url("http://host/v1?key=hunter2")
    assert "hunter2" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("127.0.0.1", "loopback"), ("127.8.8.8", "loopback"), ("[::1]", "loopback"), ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"), ("a.localhost", "loopback"), ("[::ffff:127.0.0.1]", "loopback"),
        ("10.1.2.3", "private"), ("172.16.0.1", "private"), ("172.31.9.9", "private"), ("192.168.1.5", "private"),
        ("169.254.1.1", "private"), ("[fd00::1]", "private"), ("[fe80::1]", "private"), ("nas", "private"),
        ("ollama_box", "private"), ("nas.local", "private"), ("nas.lan", "private"), ("x.home.arpa", "private"),
        ("8.8.8.8", "remote"), ("172.32.0.1", "remote"), ("100.64.0.1", "remote"), ("[2001:db8::1]", "remote"),
        ("[::ffff:8.8.8.8]", "remote"), ("example.com", "remote"), ("134744072", "remote"), ("0x08080808", "remote"),
        ("127.1", "remote"), ("localhost.example.com", "remote"), ("notlocal", "private"),
        ("10.0.0.1.example.com", "remote"),
    ],
)  # fmt: skip
def test_an_address_is_loopback_private_or_remote(host: str, where: Locality) -> None:
    url = f"http://{host}:11434/x"
    assert locality(url) == where
    assert is_loopback(url) == (where == "loopback")
