"""The names that Rune uses of jsonschema."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import validators as validators
from jsonschema.exceptions import SchemaError as SchemaError
from jsonschema.exceptions import ValidationError as ValidationError

class Validator:
    VALIDATORS: Mapping[str, Callable[[Validator, Any, Any, Mapping[str, Any]], Iterator[ValidationError] | None]]
    # `registry` is a referencing.Registry of any contents.
    def __init__(self, schema: object, *, registry: object = ...) -> None: ...
    @classmethod
    def check_schema(cls, schema: object) -> None: ...
    def iter_errors(self, instance: object) -> Iterator[ValidationError]: ...
