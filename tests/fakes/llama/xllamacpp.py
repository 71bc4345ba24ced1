"""Stands in for the library `xllamacpp` inside a real worker: a scripted llama.cpp server on a unix socket.

The worker finds it through PYTHONPATH. The folder RUNE_FAKE_LLAMA holds the script: `answers/NNN` are raw
event streams, used up in order; `sent/NNN` receives the bodies; `called_off` appears when a client hangs up.
An answer that ends in `HANG` is held open, one that ends in `DIE` ends the process,
`DIE` alone before anything is said.
"""

import os
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any, ClassVar


class CommonParams:
    """Takes any parameter, as deep as the worker sets them."""

    def __getattr__(self, name: str) -> Any:
        part = CommonParams()
        setattr(self, name, part)
        return part


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: ClassVar[Path]
    window: ClassVar[int]
    busy: ClassVar[int] = 0

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        self._whole(
            200, b'[{"id":0,"n_ctx":%d,"is_processing":%s}]' % (self.window, [b"false", b"true"][self.busy > 0])
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/tokenize":
            self._whole(200, b'{"tokens":[1,2,3]}')
            return
        answer = min(self.folder.joinpath("answers").iterdir())
        stream = answer.read_bytes()
        answer.unlink()
        self.folder.joinpath("sent", answer.name).write_bytes(body)
        if stream == b"DIE":
            os._exit(7)
        status, _, rest = stream.partition(b" ")
        if status.isdigit():
            self._whole(int(status), rest)
            return
        _Conversation.busy += 1
        try:
            self._stream(stream)
        finally:
            _Conversation.busy -= 1

    def _stream(self, stream: bytes) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        said = stream.removesuffix(b"HANG").removesuffix(b"DIE")
        self.wfile.write(b"%x\r\n%s\r\n" % (len(said), said))
        self.wfile.flush()
        if stream.endswith(b"DIE"):
            os._exit(7)
        if stream.endswith(b"HANG"):
            select.select([self.connection], [], [])
            self.folder.joinpath("called_off").touch()
        elif stream.endswith(b"[DONE]\n\n"):
            self.wfile.write(b"0\r\n\r\n")

    def _whole(self, status: int, body: bytes) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server:
    """Serves from a thread of its own, as the real one does."""

    def __init__(self, params: Any) -> None:
        _Conversation.folder = Path(os.environ["RUNE_FAKE_LLAMA"])
        _Conversation.window = params.n_ctx
        (path,) = params.hostnames
        server = ThreadingUnixStreamServer(path, _Conversation)
        assert server.address_family == socket.AF_UNIX
        threading.Thread(target=server.serve_forever, daemon=True).start()
