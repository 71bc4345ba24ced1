"""What is there, as four kinds of servers tell it: `/v1/models`, and what llama.cpp and LM Studio say besides.

The list itself is poor by the book (`id`, `owned_by`). vLLM adds `max_model_len`, llama.cpp `meta` and its `/props`, LM
Studio has `/api/v0/models`, hosted servers add fields of their own. What nobody says stays unknown.
"""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final

import msgspec

from rune.errors import ProtocolError
from rune.models.transport import Capability, LoadedModel, ModelInfo
from rune.models.wire.ndjson import as_list, as_object

_LLAMA: Final = "llamacpp"
_VLLM: Final = "vllm"
_GGUF: Final = ".gguf"
_BILLION: Final = 1_000_000_000
_MILLION: Final = 1_000_000


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a server. `info.name` begins with the server's, so that a conversation can never slide to a model of
    the same name elsewhere; `model_id` is its name on the wire, `window` what is really loaded, in tokens (None: not
    said, or not loaded), `loaded` None where the server does not say; `size` in bytes.
    """

    info: ModelInfo
    model_id: str
    owner: str
    window: int | None = None
    loaded: bool | None = None
    size: int | None = None

    def is_named(self, name: str) -> bool:
        """Whether a person, or the list itself, means this model: with its server's name, without, or by its id."""
        return name in {self.info.name, self.info.name.removeprefix(f"{self.info.provider}/"), self.model_id}

    @property
    def is_llama(self) -> bool:
        """Whether llama.cpp's own server has it."""
        return self.owner == _LLAMA

    @property
    def is_told(self) -> bool:
        """Whether the list itself says all there is to know."""
        return self.owner in {_LLAMA, _VLLM} or self.info.context_length is not None

    def as_loaded(self) -> LoadedModel | None:
        """Return it as a model in memory; None unless the server says that it is."""
        if not self.loaded:
            return None
        return LoadedModel(name=self.info.name, window=self.window, size=self.size, on_gpu=None)


def read_models(answer: dict[str, Any], *, provider: str, remote: bool) -> list[Served]:
    """Return what `/v1/models` lists, in the server's order. Raises ProtocolError when it is no list of models."""
    # llama.cpp lists the same models twice, the second time as Ollama would, with capabilities.
    besides = {_text(row, "model"): row for row in _rows(answer, "models")} if "models" in answer else {}
    if "data" not in answer:
        raise ProtocolError("the list of models holds no `data`")
    rows = [row for row in _rows(answer, "data") if _text(row, "id")]
    names = [f"{provider}/{name}" for name in _names([_text(row, "id") for row in rows])]
    return [
        _served(row, besides.get(_text(row, "id"), {}), name, provider=provider, remote=remote)
        for row, name in zip(rows, names, strict=True)
    ]


def with_props(served: Served, props: dict[str, Any]) -> Served:
    """Add what llama.cpp's `/props` says of the model that it has loaded."""
    caps, modalities = _object(props, "chat_template_caps"), _object(props, "modalities")
    template = _text(props, "chat_template")
    capabilities = set(served.info.capabilities)
    # Older servers do not say what their template can: one that never names tools cannot show them.
    if caps.get("supports_tools", "tools" in template) or caps.get("supports_tool_calls"):
        capabilities.add("tools")
    if "enable_thinking" in template or caps.get("supports_reasoning_effort"):
        capabilities.add("thinking")
    if modalities.get("vision") is True:
        capabilities.add("vision")
    if "chat" not in served.info.capabilities:
        capabilities = set(served.info.capabilities)
    window = served.window or _positive(_object(props, "default_generation_settings").get("n_ctx"))
    return _with(served, capabilities, window=window, loaded=served.loaded)


def with_studio(served: Served, answer: dict[str, Any]) -> Served:
    """Add what LM Studio's `/api/v0/models` says of a model."""
    row = next((row for row in _rows(answer, "data") if _text(row, "id") == served.model_id), None)
    if row is None:
        return served
    loaded = _text(row, "state") == "loaded"
    window = _positive(row.get("loaded_context_length")) if loaded else None
    info = msgspec.structs.replace(
        served.info,
        context_length=_positive(row.get("max_context_length")) or served.info.context_length,
        quantisation=_text(row, "quantization") or served.info.quantisation,
        family=_text(row, "arch") or served.info.family,
    )
    return _with(msgspec.structs.replace(served, info=info), _capabilities(row), window=window, loaded=loaded)


def _with(served: Served, capabilities: Iterable[Capability], *, window: int | None, loaded: bool | None) -> Served:
    length = window or served.info.context_length
    info = msgspec.structs.replace(served.info, capabilities=frozenset(capabilities), context_length=length)
    return msgspec.structs.replace(served, info=info, window=window, loaded=loaded)


def _served(row: dict[str, Any], besides: dict[str, Any], name: str, *, provider: str, remote: bool) -> Served:
    meta, owner = _object(row, "meta"), _text(row, "owned_by")
    window = _positive(row.get("max_model_len")) or _positive(meta.get("n_ctx"))
    trained = next(
        (
            length
            for length in (
                meta.get("n_ctx_train"),
                row.get("context_length"),
                row.get("context_window"),
                row.get("max_context_length"),
            )
            if _positive(length)
        ),
        None,
    )
    status = _text(_object(row, "status"), "value")
    return Served(
        info=ModelInfo(
            name=name,
            provider=provider,
            capabilities=_capabilities(row | besides),
            # What the server has loaded bounds what can be sent, whatever the model was trained for. Its size stays
            # unsaid here: the memory is the server's, and it is taken already.
            context_length=window or trained,
            parameters=_parameters(_positive(meta.get("n_params"))),
            quantisation=_text(meta, "ftype"),
            remote=remote,
        ),
        model_id=_text(row, "id"),
        owner=owner,
        window=window,
        loaded=status == "loaded" if status else (True if owner in {_LLAMA, _VLLM} else None),
        size=_positive(meta.get("size")),
    )


def _names(ids: list[str]) -> list[str]:
    """Return what a person calls the models: a file's bare name instead of its path, where that is one of its own."""
    short = [PurePath(each).name.removesuffix(_GGUF) if _is_file(each) else each for each in ids]
    return [name if short.count(name) == 1 else each for name, each in zip(short, ids, strict=True)]


def _is_file(name: str) -> bool:
    return name.endswith(_GGUF) and ("/" in name or "\\" in name)


def _capabilities(row: dict[str, Any]) -> frozenset[Capability]:
    """Return what a row of a list says; a model of which nothing is said is taken for one that chats."""
    given = row.get("capabilities")
    flags = as_object(given) or {}
    said = {word for word in as_list(given) or () if isinstance(word, str)} | {
        name for name, held in flags.items() if held is True
    }
    said |= {word for word in as_list(row.get("supported_parameters")) or () if isinstance(word, str)}
    kind = _text(row, "type") or _text(row, "task")
    if kind.startswith("embed") or flags.get("completion_chat") is False or _only_embeds(given, said):
        return frozenset({"embedding"})
    found: set[Capability] = {"chat"}
    if said & {"tools", "tool_use", "function_calling"}:
        found.add("tools")
    if said & {"reasoning", "thinking"}:
        found.add("thinking")
    modalities = as_list(_object(row, "architecture").get("input_modalities")) or ()
    if kind == "vlm" or said & {"vision", "multimodal"} or "image" in modalities:
        found.add("vision")
    return frozenset(found)


def _only_embeds(given: object, said: set[str]) -> bool:
    return as_list(given) is not None and "embedding" in said and "completion" not in said


def _parameters(count: int | None) -> str:
    if count is None:
        return ""
    return f"{count / _BILLION:.2f}B" if count >= _BILLION else f"{count / _MILLION:.2f}M"


def _rows(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = as_list(answer.get(key) or [])
    if items is None:
        raise ProtocolError(f"`{key}` is not a list")
    return [fields for item in items if (fields := as_object(item)) is not None]


def _object(fields: dict[str, Any], key: str) -> dict[str, Any]:
    return as_object(fields.get(key)) or {}


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
