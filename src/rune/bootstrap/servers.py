"""What can answer: the servers that are set or found, and the embedded model."""

from collections.abc import Mapping
from pathlib import Path

from rune.config.settings import Settings
from rune.host.paths import Home
from rune.models.embedded.model_file import embedded_model_path
from rune.models.embedded.transport import EmbeddedTransport, embedded_installed
from rune.models.ollama.catalog import PROVIDER
from rune.models.ollama.transport import OllamaTransport
from rune.models.openai_compatible.address import KEY_VARIABLE, URL_VARIABLE, ServerAddress
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.refused import RefusedServer
from rune.models.scripted import ScriptedTransport
from rune.models.transport import ChatTransport
from rune.models.wire.endpoint import locality, ollama_base_url


def reachable_transports(home: Home, settings: Settings, environ: Mapping[str, str]) -> list[ChatTransport]:
    """Return what can answer, in the order of preference: a scripted model alone where one is named. A server that
    is not on this machine stands there as refused while `local_only` is on.
    """
    if script := environ.get("RUNE_SCRIPTED_MODEL", ""):
        return [ScriptedTransport.from_file(Path(script))]
    first_byte, between = settings.model.first_byte_timeout, settings.model.token_timeout
    found: list[ChatTransport] = [_ollama(settings, environ)]
    for address in compatible_servers(settings, environ):
        if _is_refused(address.url, settings):
            found.append(RefusedServer(address.url, provider=address.name, dialect="openai"))
        else:
            found.append(OpenAITransport(address, first_byte_timeout=first_byte, token_timeout=between))
    path = embedded_model_path(home.models, environ, settings.model.embedded_model)
    if path is not None and embedded_installed():
        log = home.logs / "embedded-worker.log"
        found.append(
            EmbeddedTransport(path, log_path=log, environ=environ, first_byte_timeout=first_byte, token_timeout=between)
        )
    return found


def compatible_servers(settings: Settings, environ: Mapping[str, str]) -> list[ServerAddress]:
    """Return the servers that speak OpenAI's wire: the one that the environment names, then those of config.yaml.

    Raises ConfigError for an address that is none, or one to which its key must not be sent.
    """
    found: list[ServerAddress] = []
    if url := environ.get(URL_VARIABLE, "").strip():
        found.append(ServerAddress.checked(url, source=URL_VARIABLE, key=environ.get(KEY_VARIABLE, "")))
    for server in settings.model.servers:
        address = ServerAddress.checked(
            server.url,
            source=f"model.servers.{server.name}.url",
            name=server.name,
            key=environ.get(server.key_env, "") if server.key_env else "",
            key_variable=server.key_env,
        )
        found.append(address)
    return found


def _ollama(settings: Settings, environ: Mapping[str, str]) -> ChatTransport:
    named = environ.get("OLLAMA_HOST", "")
    host = ollama_base_url(named) if named else ollama_base_url(settings.model.host, source="model.host")
    if _is_refused(host, settings):
        return RefusedServer(host, provider=PROVIDER, dialect="ollama")
    return OllamaTransport(
        host, first_byte_timeout=settings.model.first_byte_timeout, token_timeout=settings.model.token_timeout
    )


def _is_refused(url: str, settings: Settings) -> bool:
    return settings.model.local_only and locality(url) == "remote"
