"""Server-sent events from bytes cut anywhere: the framing of every OpenAI-style stream.

Follows the event stream format of the HTML standard, of which servers use `data:` alone: lines end in
LF, CR LF or CR; a blank line ends an event; a line that begins with a colon is a comment.
"""

from rune.errors import ProtocolError

MAX_EVENT = 16 * 1024 * 1024


class EventDecoder:
    """Takes bytes as they arrive and gives the data of each event that is whole.

    Data stays bytes, so that a character cut between two chunks needs no care. An event without data
    (a comment that keeps the connection alive, a bare `event:`) gives nothing.
    """

    def __init__(self, *, max_event: int = MAX_EVENT) -> None:
        self._max_event = max_event
        self._line = bytearray()
        self._data: list[bytes] = []
        self._held = 0
        self._after_cr = False
        self._first = True
        self._lines = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each event that `chunk` completes. Raises ProtocolError over 16 MB."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r") or (self._after_cr and not chunk)
        events: list[bytes] = []
        # bytes.splitlines splits at LF, CR and CR LF only; str.splitlines would also split inside strings.
        for piece in chunk.splitlines(keepends=True):
            body = piece.rstrip(b"\r\n")
            self._line += body
            self._held += len(body)
            if self._held > self._max_event:
                raise ProtocolError(f"an event of more than {self._max_event:,} bytes", line=self._lines + 1)
            if len(body) < len(piece):
                line = bytes(self._line)
                self._line.clear()
                data = self._end_line(line)
                if data is not None:
                    events.append(data)
        return events

    def _end_line(self, line: bytes) -> bytes | None:
        self._lines += 1
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            data, self._data, self._held = self._data, [], 0
            return b"\n".join(data) if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        else:
            self._held -= len(line)
        return None
