"""config.yaml -> Settings: strict, and every complaint says file, line, key and what is allowed.

The shape is that of `settings.py`, read from its fields; only the ranges stand here.
"""

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from rune.config.servers import read_servers
from rune.config.settings import Settings
from rune.config.yaml_file import Entry, Scalar, YamlFile, line_of, read_yaml
from rune.errors import ConfigError


class Range(msgspec.Struct, frozen=True):
    """What a number may be, ends included; `above` excludes its own value."""

    least: float = -math.inf
    most: float = math.inf
    above: float | None = None

    def holds(self, value: float) -> bool:
        """Say whether the value is finite and inside."""
        if not math.isfinite(value) or (self.above is not None and value <= self.above):
            return False
        return self.least <= value <= self.most

    def __str__(self) -> str:
        if self.above is not None:
            return f"a number above {self.above:g}"
        return f"{self.least:.0f} to {self.most:.0f}"


# Every number of Settings has its line here; a test holds it.
RANGES: dict[str, Range] = {
    "model.first_byte_timeout": Range(above=0),
    "model.token_timeout": Range(above=0),
    "context.max_context": Range(least=2048, most=1_048_576),
    "turn.iteration_budget": Range(least=1, most=200),
    "retention.undo_days": Range(least=1, most=3650),
    "retention.undo_megabytes": Range(least=1, most=1_000_000),
    "retention.log_megabytes": Range(least=1, most=1000),
    # One piece alone could not be shortened without losing all of it.
    "retention.log_pieces": Range(least=2, most=20),
    "retention.log_days": Range(least=1, most=3650),
}


_Group = TypeVar("_Group", bound=msgspec.Struct)


def load_settings(file: Path) -> Settings:
    """Read the settings; a missing or empty file gives the defaults. Raises ConfigError for the first
    thing that is wrong, and then nothing of the file counts.
    """
    document = read_yaml(file)
    if document.root is None:
        return Settings()
    return _section(document, document.entries(document.root, ""), Settings)


def check_settings(settings: Settings) -> None:
    """Raise ConfigError (without file and line) for a number out of range, wherever the settings came from."""
    for key, value in _leaves(settings, ""):
        if (allowed := RANGES.get(key)) and not allowed.holds(value):
            raise ConfigError(f"{key}: {value} is not allowed; allowed: {allowed}", key=key)


def config_values(settings: Settings) -> dict[str, str]:
    """Return every text that is set, by dotted key, so that masking can look for secrets among them."""
    defaults = dict(_leaves(Settings(), ""))
    return {key: value for key, value in _leaves(settings, "") if isinstance(value, str) and value != defaults[key]}


class SettingsSnapshot(msgspec.Struct, frozen=True):
    """Settings as they were at one time; `version` counts from 1 in each process."""

    version: int
    settings: Settings


class CurrentSettings:
    """Holds the running snapshot, which is replaced whole or not at all (spine.md, Configuration)."""

    def __init__(self, settings: Settings) -> None:
        check_settings(settings)
        self._lock = threading.Lock()
        self._snapshot = SettingsSnapshot(1, settings)

    @property
    def snapshot(self) -> SettingsSnapshot:
        """The settings in force; who needs them for longer keeps this object."""
        return self._snapshot

    def swap(self, settings: Settings) -> SettingsSnapshot:
        """Put checked settings in force. Raises ConfigError, and then the old ones stay."""
        check_settings(settings)
        with self._lock:
            self._snapshot = SettingsSnapshot(self._snapshot.version + 1, settings)
            return self._snapshot


def _section(document: YamlFile, entries: list[Entry], kind: type[_Group]) -> _Group:
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for entry in entries:
        if entry.name not in fields:
            document.refuse_unknown(entry, fields)
        field = fields[entry.name]
        if get_origin(field) is tuple:  # the one list there is
            values[entry.name] = read_servers(document, entry)
        elif get_origin(field) is Literal:
            values[entry.name] = _choice(document, entry, get_args(field))
        elif issubclass(field, msgspec.Struct):
            values[entry.name] = _section(document, document.entries(entry.value, entry.key), field)
        else:
            values[entry.name] = _value(document, entry, field)
    return kind(**values)


def _value(document: YamlFile, entry: Entry, expected: type[Scalar]) -> Scalar:
    if expected is str:
        return document.text(entry)
    value = document.scalar(entry, expected)
    if (allowed := RANGES.get(entry.key)) and not (isinstance(value, (int, float)) and allowed.holds(value)):
        document.refuse(
            f"{entry.key}: {value} is not allowed; allowed: {allowed}", line=line_of(entry.value), key=entry.key
        )
    return value


def _choice(document: YamlFile, entry: Entry, allowed: tuple[str, ...]) -> str:
    value = document.text(entry)
    if value not in allowed:
        document.refuse(
            f"{entry.key}: {value!r} is not allowed; allowed: {', '.join(allowed)}",
            line=line_of(entry.value),
            key=entry.key,
        )
    return value


def _leaves(settings: msgspec.Struct, path: str) -> Iterator[tuple[str, Any]]:
    for name in settings.__struct_fields__:
        value: object = getattr(settings, name)
        key = f"{path}.{name}" if path else name
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, key)
        else:
            yield key, value
