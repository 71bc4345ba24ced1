"""What a person can set, validated and frozen. A turn keeps the snapshot it began with."""

import msgspec

from rune.records.permissions import PermissionMode


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `model.servers:`, a server that speaks OpenAI's wire. `name` tells its models apart from others' of the
    same name; `key_env` is the environment variable that holds its key, "" for none: the key never stands in the file.
    """

    name: str
    url: str
    key_env: str = ""


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`model:` in config.yaml. `name` "" means: choose; `host` "" means: OLLAMA_HOST, else loopback.
    Time-outs in seconds: before the first byte (a model may load for minutes), and between tokens.
    """

    name: str = ""
    host: str = ""
    local_only: bool = True
    first_byte_timeout: float = 600.0
    token_timeout: float = 60.0
    embedded_model: str = ""
    servers: tuple[ServerSettings, ...] = ()


class ContextSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`context:` in config.yaml. `max_context` is the largest window Rune asks for by itself, in tokens."""

    max_context: int = 16384


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`turn:` in config.yaml. `iteration_budget` is the most model calls of one turn, 1 to 200."""

    iteration_budget: int = 24


class PermissionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`permissions:` in config.yaml. `mode` is what tools may do without asking in a conversation that begins."""

    mode: PermissionMode = "ask"


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`retention:` in config.yaml. What undoes changes to files goes after `undo_days`, and the oldest of it when it
    is more than `undo_megabytes`. A log has `log_pieces` files of `log_megabytes`; logs and traces of a place in the
    journal that nobody writes any more go after `log_days`. The journal itself is never shortened.
    """

    undo_days: int = 30
    undo_megabytes: int = 500
    log_megabytes: int = 10
    log_pieces: int = 3
    log_days: int = 90


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of config.yaml."""

    model: ModelSettings = ModelSettings()
    context: ContextSettings = ContextSettings()
    turn: TurnSettings = TurnSettings()
    permissions: PermissionSettings = PermissionSettings()
    retention: RetentionSettings = RetentionSettings()
