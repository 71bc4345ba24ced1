"""`model.servers:` in config.yaml, a list of servers; complaints name file, line and key, and never hold a key."""

import re
from typing import TYPE_CHECKING, Final

from rune.config.settings import ServerSettings
from rune.config.yaml_file import Entry, YamlFile, line_of

if TYPE_CHECKING:
    from yaml import AnyNode

_FIELDS: Final = ("name", "url", "key_env")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
# What models are already told apart by.
_TAKEN: Final = frozenset({"ollama", "embedded", "scripted", "openai-compatible"})
_KEYS: Final = frozenset({"key", "api_key", "apikey", "token", "secret", "password"})
_IN_ENVIRONMENT: Final = "Put the key into an environment variable and write that variable's name at key_env."


def read_servers(document: YamlFile, entry: Entry) -> tuple[ServerSettings, ...]:
    """Return the servers in the file's order. Raises ConfigError for the first thing that is wrong."""
    found: dict[str, int] = {}
    servers: list[ServerSettings] = []
    for number, node in enumerate(document.items(entry)):
        place = f"{entry.key}[{number}]"
        server = _server(document, node, place)
        first = found.setdefault(server.name.lower(), line_of(node))
        if first != line_of(node):
            document.refuse(
                f"{place}.name: another server on line {first} has that name", line=line_of(node), key=f"{place}.name"
            )
        servers.append(server)
    return tuple(servers)


def _server(document: YamlFile, node: "AnyNode", place: str) -> ServerSettings:
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for entry in document.entries(node, place):
        if entry.name.lower() in _KEYS:
            document.refuse(
                f"{entry.key}: a key never stands in this file", line=entry.line, key=entry.key, hint=_IN_ENVIRONMENT
            )
        if entry.name not in _FIELDS:
            document.refuse_unknown(entry, _FIELDS)
        values[entry.name], lines[entry.name] = document.text(entry), entry.line
    for name in ("name", "url"):
        if not values.get(name):
            document.refuse(f"{place}: {name} is missing", line=line_of(node), key=f"{place}.{name}")
    _check(document, values, lines, place)
    return ServerSettings(**values)


def _check(document: YamlFile, values: dict[str, str], lines: dict[str, int], place: str) -> None:
    name = values["name"]
    if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
        why = "is what Rune calls another one" if name.lower() in _TAKEN else "is not a name for a server"
        document.refuse(
            f"{place}.name: {name!r} {why}; allowed: up to 40 letters, digits, dots, dashes and underlines",
            line=lines["name"],
            key=f"{place}.name",
        )
    if not values["url"].startswith(("http://", "https://")):
        document.refuse(f"{place}.url: begins with neither http:// nor https://", line=lines["url"], key=f"{place}.url")
    if values.get("key_env") and not _VARIABLE.fullmatch(values["key_env"]):
        # It may be the key itself, so it is not repeated.
        document.refuse(
            f"{place}.key_env: not the name of an environment variable",
            line=lines["key_env"],
            key=f"{place}.key_env",
            hint=_IN_ENVIRONMENT,
        )
