"""The signals that ask for an end. Imports next to nothing: they count from the first moment on."""

import _signal as signal  # the module built on it takes as long to import as all else before the first frame

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> list[int]:
    """Return those that whoever started Rune did not have ignored (nohup, a background job)."""
    return [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


def raise_on_signals() -> None:
    """Let each of them raise KeyboardInterrupt."""
    for number in heeded():
        signal.signal(number, signal.default_int_handler)


def ignore_signals() -> None:
    """Ignore them in the last moments, when everything is done and the interpreter lets itself go."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class HeldBack:
    """Lets the signals wait while modules are imported: raised in there, KeyboardInterrupt may be lost in C code that
    makes another exception of it, or leave half a module behind.
    """

    def __enter__(self) -> None:
        """Begin to hold them back."""
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def __exit__(self, *_: object) -> None:
        """Let them through; one that came meanwhile raises now."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
