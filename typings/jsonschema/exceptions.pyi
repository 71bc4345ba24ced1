from collections import deque
from collections.abc import Iterable
from typing import Any

class _Error(Exception):
    message: str
    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    def __init__(self, message: str) -> None: ...
    @property
    def absolute_path(self) -> deque[str | int]: ...

class ValidationError(_Error): ...
class SchemaError(_Error): ...

def best_match(errors: Iterable[ValidationError]) -> ValidationError | None: ...
