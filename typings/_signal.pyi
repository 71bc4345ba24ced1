# The part of CPython's own signal module that Rune uses before it can afford the one built on it.
from collections.abc import Callable, Iterable
from types import FrameType

SIGCONT: int
SIGHUP: int
SIGINT: int
SIGTERM: int
SIGTSTP: int
SIG_BLOCK: int
SIG_DFL: int
SIG_IGN: int
SIG_SETMASK: int

def default_int_handler(number: int, frame: FrameType | None, /) -> None: ...
def getsignal(number: int, /) -> Callable[[int, FrameType | None], object] | int | None: ...
def pthread_sigmask(how: int, mask: Iterable[int], /) -> set[int]: ...
def signal(
    number: int, handler: Callable[[int, FrameType | None], object] | int, /
) -> Callable[[int, FrameType | None], object] | int | None: ...
