"""Which action protocol a model is likelier to manage, before anything was measured. Pure."""

import re
from typing import Final

from rune.models.transport import ModelInfo
from rune.records.models import ActionProtocol

# Below it, models call no tool through their template, and do so constrained (models.md, Action protocols).
LEAST_NATIVE: Final = 8_000_000_000

# Below it more tools are more to mistake, and a processor alone reads them for seconds.
TINY: Final = 3_000_000_000

# Families that were not trained to call tools: a template can offer them all the same, and they answer in prose.
_UNTRAINED: Final = frozenset({"gemma", "gemma2", "gemma3", "gemma3n", "phi2", "phi3", "starcoder2"})

_SIZE: Final = re.compile(r"(?:(\d+)\s*x\s*)?(\d+(?:\.\d+)?)\s*([KMBT])?", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def first_guess(info: ModelInfo) -> tuple[ActionProtocol, str]:
    """Return the protocol, and why in a few words."""
    if "tools" not in info.capabilities:
        return "constrained", "its server knows no way to offer it tools"
    if info.family.lower() in _UNTRAINED:
        return "constrained", f"the family {info.family} was not trained to call tools"
    size = parameters_of(info.parameters)
    if size is None:
        return "constrained", "its size is not known, and it was not measured yet"
    if size < LEAST_NATIVE:
        return "constrained", f"{info.parameters} parameters: below 8B the native way seldom works"
    return "native", f"{info.parameters} parameters, and its server offers it tools"


def is_small(info: ModelInfo) -> bool:
    """Whether it counts as under 8B: also one whose size nobody gave."""
    size = parameters_of(info.parameters)
    return size is None or size < LEAST_NATIVE


def is_tiny(info: ModelInfo) -> bool:
    """Whether it is known to have less than 3B: it gets fewer tools, and chooses where larger ones write."""
    size = parameters_of(info.parameters)
    return size is not None and size < TINY


def parameters_of(text: str) -> int | None:
    """Return how many parameters `1.5B`, `135M`, `8x7B` or `7241732096` are; None where the text does not say.

    Of several figures the first is the whole (`30B-A3B`); experts count all.
    """
    found = _SIZE.search(text)
    if found is None:
        return None
    experts, number, unit = found.groups()
    size = int(experts or 1) * float(number) * _UNITS[(unit or "").upper()]
    # A bare small number is a version or nonsense, never a size.
    return None if not unit and size < _UNITS["M"] else round(size)
