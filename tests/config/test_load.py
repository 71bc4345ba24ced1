"""config.yaml: what is accepted, and that every complaint says where and what is allowed."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.config.load import RANGES, CurrentSettings, check_settings, config_values, load_settings
from rune.config.settings import ContextSettings, ModelSettings, PermissionSettings, Settings, TurnSettings
from rune.errors import ConfigError


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "config.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def refusal(folder: Path, text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(folder, text))
    assert caught.value.file == str(folder / "config.yaml")
    return caught.value


def test_a_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "config.yaml") == Settings()


@pytest.mark.parametrize(
    "text", ["", "\n  \n", "# nothing is set\n", "---\n", "model:\n", "\ufeff# a mark of byte order\n"]
)
def test_a_file_that_sets_nothing_gives_the_defaults(tmp_path: Path, text: str) -> None:
    assert load_settings(write(tmp_path, text)) == Settings()


def test_every_setting_can_be_set(tmp_path: Path) -> None:
    text = """
model:
  name: qwen3:8b
  host: "http://127.0.0.1:11434"
  local_only: false
  first_byte_timeout: 30
  token_timeout: 1.5
  embedded_model: ~/models/größer.gguf
context: {max_context: 8192}
turn:
  iteration_budget: 200
permissions:
  mode: read
"""
    assert load_settings(write(tmp_path, text)) == Settings(
        model=ModelSettings(
            name="qwen3:8b",
            host="http://127.0.0.1:11434",
            local_only=False,
            first_byte_timeout=30.0,
            token_timeout=1.5,
            embedded_model="~/models/größer.gguf",
        ),
        context=ContextSettings(max_context=8192),
        turn=TurnSettings(iteration_budget=200),
        permissions=PermissionSettings(mode="read"),
    )


def test_what_is_not_set_keeps_its_default(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, "model:\n  name: qwen3:8b\n"))
    assert settings.model == ModelSettings(name="qwen3:8b")
    assert settings.turn == TurnSettings()


def test_a_whole_number_where_a_time_belongs_becomes_a_float(tmp_path: Path) -> None:
    assert type(load_settings(write(tmp_path, "model: {token_timeout: 30}")).model.token_timeout) is float


def test_an_unknown_key_names_its_line_the_nearest_key_and_all_allowed_ones(tmp_path: Path) -> None:
    error = refusal(tmp_path, "model:\n  name: a\n  token_timout: 5\n")
    assert (error.line, error.key) == (3, "model.token_timout")
    assert "did you mean token_timeout" in error.message
    assert "embedded_model, first_byte_timeout, host, local_only, name, servers, token_timeout" in error.message
    assert str(error).startswith(f"{tmp_path}/config.yaml:3: ")


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("modle:\n  name: a\n", 1, "modle", "did you mean model"),
        ("zzz: 1\n", 1, "zzz", "allowed: context, model, permissions, retention, turn"),
        ("turn:\n  iteration_budget: 0\n", 2, "turn.iteration_budget", "1 to 200"),
        ("turn:\n  iteration_budget: 201\n", 2, "turn.iteration_budget", "1 to 200"),
        ("turn:\n  iteration_budget: many\n", 2, "turn.iteration_budget", "expected a whole number, got text"),
        ("turn:\n  iteration_budget: 2.0\n", 2, "turn.iteration_budget", "expected a whole number, got a number"),
        ("turn:\n  iteration_budget: true\n", 2, "turn.iteration_budget", "got true/false"),
        ("turn:\n\n  iteration_budget: [1]\n", 3, "turn.iteration_budget", "got a list"),
        ("turn:\n  iteration_budget:\n", 2, "turn.iteration_budget", "got nothing"),
        ("context:\n  max_context: 2047\n", 2, "context.max_context", "2048 to 1048576"),
        ("context:\n  max_context: 1048577\n", 2, "context.max_context", "2048 to 1048576"),
        ("context: {max_context: " + "9" * 5000 + "}", 1, "context.max_context", "not a whole number"),
        ("model:\n  token_timeout: 0\n", 2, "model.token_timeout", "above 0"),
        ("model:\n  token_timeout: -1.5\n", 2, "model.token_timeout", "above 0"),
        ("model:\n  first_byte_timeout: .inf\n", 2, "model.first_byte_timeout", "above 0"),
        ("model:\n  first_byte_timeout: .nan\n", 2, "model.first_byte_timeout", "above 0"),
        ("model:\n  name: no\n", 2, "model.name", "expected text, got true/false"),
        ("model:\n  name: 2026-11-30\n", 2, "model.name", "expected text, got a date"),
        ("model:\n  local_only: 'yes'\n", 2, "model.local_only", "expected true/false, got text"),
        ("model:\n  local_only: 1\n", 2, "model.local_only", "expected true/false, got a whole number"),
        ("permissions:\n  mode: yolo\n", 2, "permissions.mode", "'yolo' is not allowed; allowed: ask, edits, read"),
        ("permissions:\n\n  mode: ''\n", 3, "permissions.mode", "'' is not allowed"),
        ("permissions:\n  mode: true\n", 2, "permissions.mode", "expected text, got true/false"),
        ("permissions: {mode: [ask]}\n", 1, "permissions.mode", "expected text"),
        ('model:\n  name: "a\\nb"\n', 2, "model.name", "control characters"),
        ('model:\n  name: "a\\ud800"\n', 2, "model.name", "control characters"),
        ("model: qwen3\n", 1, "model", "expected a group of keys, got text"),
        ("- model\n", 1, "", "expected a group of keys, got a list"),
        ("just words\n", 1, "", "expected a group of keys, got text"),
        ("1: 2\n", 1, "", "a key must be text"),
        ("? [a]\n: 2\n", 1, "", "a key must be text"),
        ("turn: {}\nmodel: {}\nturn: {}\n", 3, "turn", "twice (first on line 1)"),
        ("model:\n  name: a\n  name: b\n", 3, "model.name", "twice (first on line 2)"),
        ("base: &b {name: x}\nmodel:\n  <<: *b\n", 1, "base", "unknown key"),
        ("model:\n  <<: {name: x}\n", 2, "model.<<", "unknown key"),
        ("model:\n  name: !!python/object/apply:os.getcwd []\n", 2, "model.name", "something tagged"),
        ("model: !!map nonsense\n", 1, "model", "expected a group of keys"),
        ("model:\n  name: !!str [1]\n", 2, "model.name", "expected text"),
        ("model:\n  local_only: !!bool perhaps\n", 2, "model.local_only", "not true/false"),
        ("turn:\n  iteration_budget: !!int ''\n", 2, "turn.iteration_budget", "not a whole number"),
    ],
)
def test_a_wrong_value_names_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    error = refusal(tmp_path, text)
    assert (error.line, error.key) == (line, key)
    assert words in error.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("model:\n  name: 'open\n", 3),
        ("model:\n\tname: a\n", 2),
        ("model: {name: a\n", 2),
        ("model: *nowhere\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("model:\n  name: \x01\n", 2),
        ("%YAML 9.0\n---\na: 1\n", 1),
        (b"model:\n  name: caf\xe9\n", 2),
        (b"\xff\xfem\x00o\x00", 1),
        ("{a: " * 3_000, 0),
    ],
)
def test_what_is_not_yaml_at_all_names_the_line(tmp_path: Path, text: str | bytes, line: int) -> None:
    assert refusal(tmp_path, text).line == line


def test_a_bomb_of_aliases_is_refused_at_once(tmp_path: Path) -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, after in zip("abcdefghijklm", "bcdefghijklmn", strict=True):
        rows.append(f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]")
    assert refusal(tmp_path, "\n".join(rows)).key == "a"


def test_a_file_that_names_itself_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "model: &a\n  model: *a\n").key == "model.model"


def test_a_file_over_a_megabyte_is_refused_unread(tmp_path: Path) -> None:
    assert "larger than 1,048,576 bytes" in refusal(tmp_path, "#" * (1024 * 1024 + 1)).message


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(ConfigError, match="not a regular file"):
        load_settings(tmp_path / "config.yaml")


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path / "config.yaml")


def test_a_link_to_a_file_elsewhere_is_followed(tmp_path: Path) -> None:
    (tmp_path / "dotfiles.yaml").write_text("turn: {iteration_budget: 7}")
    (tmp_path / "config.yaml").symlink_to(tmp_path / "dotfiles.yaml")
    assert load_settings(tmp_path / "config.yaml").turn.iteration_budget == 7


def test_a_key_with_control_sequences_is_shown_escaped(tmp_path: Path) -> None:
    error = refusal(tmp_path, '"\\e]52;c;x\\a": 1\n')
    assert error.message.isprintable()
    assert "\\x1b]52" in error.message


def test_a_very_long_key_is_cut_in_the_message(tmp_path: Path) -> None:
    assert f"unknown key {'k' * 100}...; allowed" in refusal(tmp_path, f"? {'k' * 50_000}\n: 1\n").message


@settings(deadline=None)  # a file is written each time, on a machine that may be busy
@given(
    st.one_of(
        st.binary(max_size=200), st.text(alphabet="modelnaturix: -{}[]&*!<>|'\"\n\t0123456789#%?@,.~", max_size=200)
    )
)
def test_whatever_stands_in_the_file_ends_in_settings_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    file = write(tmp_path_factory.getbasetemp(), content)
    try:
        assert isinstance(load_settings(file), Settings)
    except ConfigError as error:
        assert error.file == str(file)


def test_every_number_that_can_be_set_has_a_range() -> None:
    numbers = {
        f"{group.name}.{field.name}"
        for group in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(group.type)
        if field.type in {int, float}
    }
    assert numbers == set(RANGES)


def test_the_defaults_are_allowed() -> None:
    check_settings(Settings())


def test_texts_that_are_set_are_listed_for_masking_by_their_key() -> None:
    settings = Settings(model=ModelSettings(name="m", host="http://me:secret@10.0.0.2"))
    assert config_values(settings) == {"model.name": "m", "model.host": "http://me:secret@10.0.0.2"}
    assert config_values(Settings()) == {}


def test_settings_are_swapped_whole_and_earlier_snapshots_stay() -> None:
    current = CurrentSettings(Settings())
    before = current.snapshot
    wanted = Settings(turn=TurnSettings(iteration_budget=3))
    after = current.swap(wanted)
    assert (before.version, before.settings) == (1, Settings())
    assert (after.version, after.settings) == (2, wanted)
    assert current.snapshot is after


def test_settings_that_are_not_allowed_leave_the_old_ones_in_force() -> None:
    current = CurrentSettings(Settings())
    with pytest.raises(ConfigError, match="1 to 200"):
        current.swap(Settings(turn=TurnSettings(iteration_budget=999)))
    assert current.snapshot.version == 1
    assert current.snapshot.settings == Settings()
