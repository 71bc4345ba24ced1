from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Validator

Draft202012Validator: type[Validator]

def validator_for(schema: object, default: type[Validator]) -> type[Validator]: ...
def extend(validator: type[Validator], validators: Mapping[str, Callable[..., Any]]) -> type[Validator]: ...
