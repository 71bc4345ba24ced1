"""The names that Rune uses of PyYAML; node classes told apart by `id`."""

from typing import Any, Literal, TypeAlias

class Mark:
    line: int

class ScalarNode:
    id: Literal["scalar"]
    tag: str
    value: str
    start_mark: Mark

class SequenceNode:
    id: Literal["sequence"]
    tag: str
    value: list[AnyNode]
    start_mark: Mark

class MappingNode:
    id: Literal["mapping"]
    tag: str
    value: list[tuple[AnyNode, AnyNode]]
    start_mark: Mark

# Not a name of the library: what a composed node can be.
AnyNode: TypeAlias = ScalarNode | SequenceNode | MappingNode

class YAMLError(Exception): ...

class MarkedYAMLError(YAMLError):
    context: str | None
    context_mark: Mark | None
    problem: str | None
    problem_mark: Mark | None

class SafeLoader: ...

def compose(stream: str, Loader: type[SafeLoader]) -> AnyNode | None: ...
def safe_dump(data: object, *, allow_unicode: bool, sort_keys: bool, width: int) -> str: ...
def safe_load(stream: str) -> Any: ...
