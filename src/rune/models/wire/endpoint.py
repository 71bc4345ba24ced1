"""Where a model server is, and whether that is this machine (models.md, rule 17 and Choosing)."""

import ipaddress
import re
from typing import Final, Literal
from urllib.parse import urlsplit

from rune.errors import ConfigError

Locality = Literal["loopback", "private", "remote"]

DEFAULT_PORT: Final = 11434
OLLAMA_HOST: Final = "OLLAMA_HOST"

_SCHEME_PORTS: Final = {"http": 80, "https": 443}
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_LAST_PORT: Final = 65535
_ALLOWED: Final = "Allowed: host, host:port, :port, [::1]:port, http(s)://host[:port][/path]."

# An address that only a network of one's own can route: RFC 1918, link-local, unique local (RFC 4193).
_PRIVATE_NETWORKS: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
)
_PRIVATE_SUFFIXES: Final = (".local", ".lan", ".internal", ".home.arpa")
# A name of digits alone, or one like 0x08080808, is another way to write a public address.
_SINGLE_LABEL: Final = re.compile(r"[a-z_][a-z0-9_-]*")


def ollama_base_url(text: str, *, source: str = OLLAMA_HOST) -> str:
    """Return the base URL that `text` names, as Ollama's own client reads it: scheme, host, port and
    path without a slash at its end. `text` "" is the local default.

    No scheme means port 11434, `http://h` 80, `https://h` 443; an address to listen on (`0.0.0.0`, `::`)
    is reached at loopback. Raises ConfigError that names `source`; a port that is none is an error here.
    """
    value = text.strip().strip("\"'").strip()
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    scheme = scheme.lower()
    if scheme not in _SCHEME_PORTS:
        raise _refusal(text, source, f"the scheme {scheme!r} is neither http nor https")
    if "@" in rest:
        raise ConfigError(f"{source} must not hold a user name or password", key=source, hint=_ALLOWED)
    if re.search(r"[\s?#\\]", rest):
        raise _refusal(text, source, "it holds a character that has no place in an address")
    authority, _, path = rest.partition("/")
    if path and not authority:
        raise _refusal(text, source, "it names no host")
    host, port_text = _host_and_port(authority, text, source)
    if not separator and host == "ollama.com" and not port_text:
        scheme, separator = "https", "://"
    port = _port(port_text, text, source) if port_text else _SCHEME_PORTS[scheme] if separator else DEFAULT_PORT
    path = path.strip("/")
    return f"{scheme}://{host}:{port}" + (f"/{path}" if path else "")


def locality(url: str) -> Locality:
    """Say where `url` leads, by its text alone: no name is looked up.

    A name without a dot, or under a suffix that no public server has, counts as private: the person's own
    network resolves it.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    address = _address(host)
    if address is not None:
        if address.is_loopback:
            return "loopback"
        return "private" if any(address in network for network in _PRIVATE_NETWORKS) else "remote"
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback"
    return "private" if _SINGLE_LABEL.fullmatch(host) or host.endswith(_PRIVATE_SUFFIXES) else "remote"


def is_loopback(url: str) -> bool:
    """Whether `url` is this machine."""
    return locality(url) == "loopback"


def _host_and_port(authority: str, text: str, source: str) -> tuple[str, str]:
    """Split an authority; the host comes back as it stands in a URL, the port as it was written."""
    if authority.startswith("["):
        host, closed, after = authority[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            raise _refusal(text, source, "the brackets of its IPv6 address do not match")
        return _url_host(host, text, source), after[1:]
    if authority.count(":") > 1:
        return _url_host(authority, text, source), ""
    host, _, port = authority.partition(":")
    return _url_host(host, text, source), port


def _url_host(host: str, text: str, source: str) -> str:
    if not host:
        return "127.0.0.1"
    address = _address(host, unwrap=False)
    if address is None:
        if ":" in host or not _HOST_NAME.fullmatch(host):
            raise _refusal(text, source, f"{host!r} is not a host")
        return host.lower()
    if address.is_unspecified:
        return "127.0.0.1" if isinstance(address, ipaddress.IPv4Address) else "[::1]"
    return str(address) if isinstance(address, ipaddress.IPv4Address) else f"[{address}]"


def _address(host: str, *, unwrap: bool = True) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return `host` as an address, None when it is a name; an IPv4 address inside an IPv6 one is unwrapped."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if unwrap and isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _port(port: str, text: str, source: str) -> int:
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
        raise _refusal(text, source, f"{port!r} is not a port")
    return int(port)


def _refusal(text: str, source: str, reason: str) -> ConfigError:
    # What follows may be a key: some services take it there.
    address, mark, _ = text.partition("?")
    return ConfigError(f"{source}={address + mark!r} cannot be used: {reason}", key=source, hint=_ALLOWED)
