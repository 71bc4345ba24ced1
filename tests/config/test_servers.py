"""`model.servers:` in config.yaml: what is accepted, and that no complaint holds a key."""

import pytest

from rune.config.load import load_settings
from rune.config.settings import ServerSettings
from tests.config.test_load import refusal, write


def test_servers_are_read_in_their_order(tmp_path_factory: pytest.TempPathFactory) -> None:
    text = """
model:
  servers:
    - name: lab
      url: http://lab:8000/v1
      key_env: LAB_KEY
    - {name: hosted-2, url: "https://api.example.com/v1"}
"""
    assert load_settings(write(tmp_path_factory.mktemp("c"), text)).model.servers == (
        ServerSettings(name="lab", url="http://lab:8000/v1", key_env="LAB_KEY"),
        ServerSettings(name="hosted-2", url="https://api.example.com/v1"),
    )


@pytest.mark.parametrize("text", ["model:\n  servers:\n", "model:\n  servers: []\n"])
def test_no_servers_are_none(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    assert load_settings(write(tmp_path_factory.mktemp("c"), text)).model.servers == ()


@pytest.mark.parametrize(
    ("servers", "line", "says"),
    [
        ("lab", 2, "model.servers: expected a list, got text"),
        ("{name: lab}", 2, "model.servers: expected a list, got a group of keys"),
        ("[lab]", 2, "model.servers[0]: expected a group of keys, got text"),
        ("[{url: 'http://a'}]", 2, "model.servers[0]: name is missing"),
        ("[{name: a}]", 2, "model.servers[0]: url is missing"),
        ("[{name: '', url: 'http://a'}]", 2, "model.servers[0]: name is missing"),
        ("[{name: 5, url: 'http://a'}]", 2, "model.servers[0].name: expected text, got a whole number"),
        ("[{name: a/b, url: 'http://a'}]", 2, "model.servers[0].name: 'a/b' is not a name for a server"),
        ("[{name: Ollama, url: 'http://a'}]", 2, "model.servers[0].name: 'Ollama' is what Rune calls another one"),
        ("[{name: a, url: 'a:80'}]", 2, "model.servers[0].url: begins with neither http:// nor https://"),
        ("[{name: a, url: 'http://a', nmae: b}]", 2, "unknown key model.servers[0].nmae (did you mean name?)"),
        (
            "\n    - {name: a, url: 'http://a'}\n    - name: A\n      url: http://b",
            4,
            "model.servers[1].name: another server on line 3 has that name",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path_factory: pytest.TempPathFactory, servers: str, line: int, says: str
) -> None:
    error = refusal(tmp_path_factory.mktemp("c"), f"model:\n  servers: {servers}\n")
    assert error.line == line
    assert says in error.message


@pytest.mark.parametrize("name", ["key", "api_key", "token", "Key", "password"])
def test_a_key_in_the_file_is_refused_with_where_it_belongs_and_not_repeated(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    text = f"model:\n  servers:\n    - {{name: a, url: 'http://a', {name}: sk-0123456789}}\n"
    error = refusal(tmp_path_factory.mktemp("c"), text)
    assert "a key never stands in this file" in error.message
    assert "key_env" in error.hint
    assert "sk-0123456789" not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("value", ["sk-0123456789", "9LIVES", "A B", "A=B", "x" * 200])
def test_a_key_where_the_variables_name_belongs_is_refused_and_not_repeated(
    tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    text = f"model:\n  servers:\n    - name: a\n      url: http://a\n      key_env: '{value}'\n"
    error = refusal(tmp_path_factory.mktemp("c"), text)
    assert (error.line, error.key) == (5, "model.servers[0].key_env")
    assert value not in f"{error.message} {error.hint}"
