"""Where a server is and with which key it is asked, checked before anything is sent."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from rune.errors import ConfigError
from rune.models.wire.endpoint import Locality, locality, ollama_base_url

PROVIDER: Final = "openai-compatible"
URL_VARIABLE: Final = "RUNE_OPENAI_URL"
KEY_VARIABLE: Final = "RUNE_OPENAI_KEY"

_VERSION: Final = "/v1"
_ALLOWED: Final = "Write it as http(s)://host[:port][/path], for example http://127.0.0.1:8080/v1."
# What can stand in a header: anything else would be refused by the HTTP library, in words that hold the key.
_KEY: Final = re.compile(r"[\x21-\x7e]+")


class ServerAddress(NamedTuple):
    """One server: `name` is what its models are told apart by, `url` has no slash at its end, `key` "" is none, and
    `key_variable` the environment variable that a person puts it into. Its `repr` leaves the key out.
    """

    name: str
    url: str
    key: str
    key_variable: str

    @classmethod
    def checked(
        cls, url: str, *, source: str, name: str = PROVIDER, key: str = "", key_variable: str = KEY_VARIABLE
    ) -> Self:
        """Return the address that `url` means; without a path it is `/v1`. `source` is the setting to name in errors.

        Raises ConfigError for a URL that is none, a key that cannot be one, and a key that would leave for a remote
        server in the clear.
        """
        base = _base_url(url, source)
        key = key.strip()
        if key and not _KEY.fullmatch(key):
            raise ConfigError(
                f"{key_variable} holds characters that no key has", key=key_variable, hint="Set it to the key alone."
            )
        if key and base.startswith("http://") and locality(base) == "remote":
            raise ConfigError(
                f"{source}: {base} is not on your own network and http:// would send the key readable for everybody"
                " on the way",
                key=source,
                hint=f"Use https://, or unset {key_variable}.",
            )
        return cls(name, base, key, key_variable)

    @property
    def locality(self) -> Locality:
        """Whether this is this machine, a network of one's own, or remote."""
        return locality(self.url)

    @property
    def root(self) -> str:
        """What stands before `/v1` in the URL's path; llama.cpp and LM Studio answer more questions there."""
        return self.url.removesuffix(_VERSION)

    @property
    def prefix(self) -> str:
        """What stands behind the root: `/v1`, or nothing."""
        return self.url.removeprefix(self.root)

    @property
    def is_versioned(self) -> bool:
        """Whether the URL ends as nearly every server's does."""
        return self.url.endswith(_VERSION)

    def headers(self) -> Mapping[str, str]:
        """Return what goes with each request."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def without_key(self, text: str) -> str:
        """Return what a server said with the key taken out of it: some repeat it in their errors."""
        return text.replace(self.key, "[key]") if self.key else text

    def __repr__(self) -> str:
        return f"ServerAddress({self.name!r}, {self.url!r})"


def _base_url(text: str, source: str) -> str:
    value = text.strip().strip("\"'").strip()
    if "://" not in value:
        raise ConfigError(f"{source}={text!r} begins with neither http:// nor https://", key=source, hint=_ALLOWED)
    try:
        base = ollama_base_url(value, source=source)
    except ConfigError as error:
        error.hint = _ALLOWED
        raise
    return base if urlsplit(base).path else base + _VERSION
