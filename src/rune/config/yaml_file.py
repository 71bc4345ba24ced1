"""Reading YAML that a person wrote, so that each complaint names file, line and key.

Only the tree of nodes is made, never objects: a tag cannot construct anything, an alias is not
expanded, and every node knows its line. PyYAML is loaded only once there is a file to read.
"""

import difflib
import errno
import unicodedata
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from rune.errors import ConfigError
from rune.host.small_files import read_bounded

if TYPE_CHECKING:
    from yaml import AnyNode, ScalarNode

Scalar = str | int | float | bool

SIZE_LIMIT = 1024 * 1024
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_SHOWN_LIMIT = 100
_NAMES: dict[type[Scalar], str] = {str: "str", int: "int", float: "float", bool: "bool"}
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true/false",
    "null": "nothing",
    "map": "a group of keys",
    "seq": "a list",
    "timestamp": "a date",
}


class Entry(msgspec.Struct, frozen=True):
    """One `key: value` of a mapping: `name` is the key as it is, `key` its dotted path made fit to be
    shown, `line` where it stands.
    """

    key: str
    name: str
    line: int
    value: "AnyNode"


class YamlFile(msgspec.Struct, frozen=True):
    """A file that was read; `root` is None when it is missing or holds nothing."""

    file: Path
    root: "AnyNode | None"

    def refuse(self, message: str, *, line: int = 0, key: str = "", hint: str = "") -> NoReturn:
        """Raise the ConfigError that says what is wrong, where."""
        raise ConfigError(message, file=str(self.file), line=line, key=key, hint=hint)

    def entries(self, node: "AnyNode", key: str) -> list[Entry]:
        """Return what stands in a mapping, in order; an empty value counts as an empty one.

        Raises ConfigError for anything else, for keys that are not plain text, and for a key that stands there twice.
        """
        if node.tag == f"{_TAG}null":
            return []
        if node.tag != f"{_TAG}map" or node.id != "mapping":
            where = f"{key}: " if key else ""
            self.refuse(f"{where}expected {_KINDS['map']}, got {kind_of(node)}", line=line_of(node), key=key)
        found: dict[str, Entry] = {}
        for name_node, value in node.value:
            line = line_of(name_node)
            if name_node.id != "scalar" or name_node.tag not in {f"{_TAG}str", _MERGE}:
                self.refuse(f"a key must be text, not {kind_of(name_node)}", line=line, key=key)
            name = name_node.value
            path = f"{key}.{_shown(name)}" if key else _shown(name)
            if name in found:
                self.refuse(f"{path} stands here twice (first on line {found[name].line})", line=line, key=path)
            found[name] = Entry(key=path, name=name, line=line, value=value)
        return list(found.values())

    def items(self, entry: Entry) -> "list[AnyNode]":
        """Return what stands in a list, in order; an empty value counts as an empty one. Raises ConfigError."""
        node = entry.value
        if node.tag == f"{_TAG}null":
            return []
        if node.tag != f"{_TAG}seq" or node.id != "sequence":
            self.refuse(
                f"{entry.key}: expected {_KINDS['seq']}, got {kind_of(node)}", line=line_of(node), key=entry.key
            )
        return node.value

    def refuse_unknown(self, entry: Entry, allowed: Collection[str]) -> NoReturn:
        """Raise the ConfigError for a key that is not one of `allowed`, with the nearest one."""
        near = difflib.get_close_matches(entry.name[:_SHOWN_LIMIT], allowed, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        self.refuse(
            f"unknown key {entry.key}{meant}; allowed: {', '.join(sorted(allowed))}", line=entry.line, key=entry.key
        )

    def scalar(self, entry: Entry, expected: type[Scalar]) -> Scalar:
        """Return a value of exactly that type; only a whole number also serves as a float. Raises ConfigError."""
        node, wanted = entry.value, _NAMES[expected]
        got = node.tag.removeprefix(_TAG)
        if node.id != "scalar" or (got != wanted and (wanted, got) != ("float", "int")):
            hint = (
                "Put the value in quotes." if wanted == "str" and got in {"int", "float", "bool", "timestamp"} else ""
            )
            if got == "null":
                hint = "Leave the whole line out to get the default."
            message = f"{entry.key}: expected {_KINDS[wanted]}, got {kind_of(node)}"
            self.refuse(message, line=line_of(node), key=entry.key, hint=hint)
        try:
            value = _construct(node)
            if isinstance(value, int) and expected is float:
                value = float(value)
        # Thousands of digits, or an explicit tag on what is not of its kind.
        except (ValueError, OverflowError, KeyError, IndexError):
            value = None
        if not isinstance(value, (str, int, float, bool)) or type(value) is not expected:
            self.refuse(f"{entry.key}: not {_KINDS[wanted]}", line=line_of(node), key=entry.key)
        return value

    def text(self, entry: Entry) -> str:
        """Return a text of one line, without what a terminal or the journal could not take. Raises ConfigError."""
        value = str(self.scalar(entry, str))
        if any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in value):
            self.refuse(
                f"{entry.key}: control characters and line breaks are not allowed",
                line=line_of(entry.value),
                key=entry.key,
            )
        return value


def read_yaml(file: Path) -> YamlFile:
    """Read one document, at most 1 MB of UTF-8; a missing file reads as an empty one. Raises ConfigError."""
    try:
        data = read_bounded(file, SIZE_LIMIT)
    except FileNotFoundError:
        return YamlFile(file, None)
    except OSError as error:
        why = f"larger than {SIZE_LIMIT:,} bytes" if error.errno == errno.EFBIG else error.strerror or str(error)
        raise ConfigError(f"cannot be read: {why}", file=str(file)) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8 text", file=str(file), line=line, hint="Save it as UTF-8.") from error
    if not text.strip():
        return YamlFile(file, None)
    return YamlFile(file, _compose(file, text))


def line_of(node: "AnyNode") -> int:
    """Return the line on which a node begins, from 1."""
    return node.start_mark.line + 1


def kind_of(node: "AnyNode") -> str:
    """Say in plain words what a node is."""
    return _KINDS.get(node.tag.removeprefix(_TAG), f"something tagged {_shown(node.tag)}")


def _compose(file: Path, text: str) -> "AnyNode | None":
    import yaml  # noqa: PLC0415 - 20 ms that a start without configuration does not pay
    from yaml.reader import ReaderError  # noqa: PLC0415 - as above

    try:
        return yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be parsed"
        raise ConfigError(f"not valid YAML: {problem}", file=str(file), line=mark.line + 1 if mark else 0) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError("not valid YAML: a character that YAML does not allow", file=str(file), line=line) from error
    except RecursionError as error:
        raise ConfigError("not valid YAML: nested too deeply", file=str(file)) from error


def _shown(name: str) -> str:
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name[:_SHOWN_LIMIT])
    return f"{escaped}..." if len(name) > _SHOWN_LIMIT else escaped


def _construct(node: "ScalarNode") -> object:
    from yaml.constructor import SafeConstructor  # noqa: PLC0415 - loaded by now: there is a node

    return SafeConstructor().construct_object(node)
