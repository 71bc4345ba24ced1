"""The kernel's word on who listens."""

import os
import socket

from rune.host.sockets import listening


def test_a_listening_socket_is_seen_and_a_connected_or_closed_one_is_not() -> None:
    before = listening(os.getpid())
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert port not in listening(os.getpid())
        server.listen()
        assert set(listening(os.getpid())) == {*before, port}
        with socket.create_connection(("127.0.0.1", port)):
            assert set(listening(os.getpid())) == {*before, port}
    assert listening(os.getpid()) == before


def test_ipv6_counts_too() -> None:
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::1", 0))
        server.listen()
        assert server.getsockname()[1] in listening(os.getpid())
