"""What Ollama says about its models: `/api/tags`, `/api/show`, `/api/ps`, `/api/embed` (models.md, rule 16)."""

import math
from typing import Any, Final

import msgspec

from rune.errors import ProtocolError
from rune.models.transport import Capability, LoadedModel, ModelInfo
from rune.models.wire.ndjson import as_list, as_object

PROVIDER: Final = "ollama"

_DEFAULT_TAG: Final = ":latest"
_CLOUD_ENDINGS: Final = (":cloud", "-cloud")
_CAPABILITIES: Final[dict[str, Capability]] = {
    "completion": "chat",
    "tools": "tools",
    "thinking": "thinking",
    "vision": "vision",
    "embedding": "embedding",
}


def same_model(left: str, right: str) -> bool:
    """Whether two names mean one model: a name without a tag means `:latest`."""
    return full_name(left) == full_name(right)


def full_name(name: str) -> str:
    """Return `name` with its tag; a colon in a registry's port is not one."""
    return name if ":" in name.rsplit("/", 1)[-1] else name + _DEFAULT_TAG


def leaves_the_machine(name: str, fields: dict[str, Any]) -> bool:
    """Whether the server passes this model's prompts on to another host."""
    return bool(fields.get("remote_host")) or name.endswith(_CLOUD_ENDINGS)


def read_tags(answer: dict[str, Any], *, remote: bool) -> list[ModelInfo]:
    """Return the installed models in the server's order, newest first. `remote`: the server itself is.

    Their capabilities are a first guess: only `/api/show` is reliable.
    """
    return [_listed(entry, remote=remote) for entry in _entries(answer, "models")]


def read_show(answer: dict[str, Any], *, name: str, listed: ModelInfo | None, remote: bool) -> ModelInfo:
    """Return one model; `listed` is its entry of the list, which alone knows size and digest."""
    details, facts = _object(answer, "details"), _object(answer, "model_info")
    length = facts.get(f"{facts.get('general.architecture')}.context_length")
    return ModelInfo(
        name=listed.name if listed else name,
        provider=PROVIDER,
        capabilities=_capabilities(answer) or _by_template(answer),
        context_length=_positive(length) or (listed.context_length if listed else None),
        size=listed.size if listed else None,
        parameters=_string(details, "parameter_size"),
        quantisation=_string(details, "quantization_level"),
        digest=listed.digest if listed else "",
        family=_string(details, "family"),
        remote=remote or leaves_the_machine(name, answer) or bool(listed and listed.remote),
    )


def read_window(answer: dict[str, Any], name: str) -> int | None:
    """Return the window of a loaded model from `/api/ps`; None when it is not loaded or not said."""
    entry = _loaded(answer, name)
    return None if entry is None else _positive(entry.get("context_length"))


def is_loaded(answer: dict[str, Any], name: str) -> bool:
    """Whether `/api/ps` lists the model."""
    return _loaded(answer, name) is not None


def read_loaded(answer: dict[str, Any]) -> list[LoadedModel]:
    """Return what `/api/ps` lists. A `size_vram` of zero is left out by the server, as every zero is."""
    return [
        LoadedModel(
            name=_string(entry, "name") or _string(entry, "model"),
            window=_positive(entry.get("context_length")),
            size=_positive(entry.get("size")),
            on_gpu=_positive(entry.get("size_vram")) or 0,
            expires_at=_string(entry, "expires_at"),
        )
        for entry in _entries(answer, "models")
    ]


def show_body(model: str) -> bytes:
    """Return the body for `/api/show`."""
    return msgspec.json.encode({"model": model})


def embed_body(model: str, texts: list[str]) -> bytes:
    """Return the body for `/api/embed`; a text that is too long must be an error, not a silence."""
    return msgspec.json.encode({"model": model, "input": texts, "truncate": False})


def read_vectors(answer: dict[str, Any], *, expected: int) -> list[list[float]]:
    """Return the vectors. Raises ProtocolError unless there is one a text and all have one length."""
    rows = as_list(answer.get("embeddings"))
    if rows is None:
        raise ProtocolError("the answer holds no embeddings")
    if len(rows) != expected:
        raise ProtocolError(f"{expected} texts were sent and {len(rows)} vectors came back")
    try:
        checked = msgspec.convert(rows, list[list[float]])
    except msgspec.ValidationError as error:
        raise ProtocolError(f"an embedding is not a list of numbers ({error})") from error
    if len({len(vector) for vector in checked}) > 1 or any(not vector for vector in checked):
        raise ProtocolError("the embeddings are empty or of different lengths")
    if not all(math.isfinite(number) for vector in checked for number in vector):
        raise ProtocolError("an embedding holds a number that is none")
    return checked


def _listed(entry: dict[str, Any], *, remote: bool) -> ModelInfo:
    name = _string(entry, "name") or _string(entry, "model")
    if not name:
        raise ProtocolError("the list of models holds one without a name")
    details = _object(entry, "details")
    return ModelInfo(
        name=name,
        provider=PROVIDER,
        capabilities=_capabilities(entry),
        context_length=_positive(details.get("context_length")),
        size=_positive(entry.get("size")),
        parameters=_string(details, "parameter_size"),
        quantisation=_string(details, "quantization_level"),
        digest=_string(entry, "digest"),
        family=_string(details, "family"),
        remote=remote or leaves_the_machine(name, entry),
    )


def _loaded(answer: dict[str, Any], name: str) -> dict[str, Any] | None:
    for entry in _entries(answer, "models"):
        if any(same_model(_string(entry, key), name) for key in ("name", "model")):
            return entry
    return None


def _capabilities(fields: dict[str, Any]) -> frozenset[Capability]:
    known = set[Capability]()
    for name in as_list(fields.get("capabilities")) or ():
        if isinstance(name, str) and name in _CAPABILITIES:
            known.add(_CAPABILITIES[name])
    return frozenset(known)


def _by_template(answer: dict[str, Any]) -> frozenset[Capability]:
    """Guess as older servers did, which list no capabilities: a template that names tools takes them."""
    takes_tools = ".Tools" in _string(answer, "template")
    return frozenset({"chat", "tools"}) if takes_tools else frozenset({"chat"})


def _entries(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = answer.get(key)
    items = [] if value is None else as_list(value)
    if items is None:
        raise ProtocolError(f"`{key}` is not a list")
    return [fields for item in items if (fields := as_object(item)) is not None]


def _object(fields: dict[str, Any], key: str) -> dict[str, Any]:
    return as_object(fields.get(key)) or {}


def _string(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
