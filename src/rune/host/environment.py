"""What a command finds in its environment: a short list of what programs need, and nothing else (threats T8).

Whatever is not on the list is left out, so that no name has to be recognised as dangerous
(`LD_PRELOAD`, `BASH_ENV`, `NODE_OPTIONS`, `SSH_AUTH_SOCK`, proxies with a password). What is on it
still goes when its value is a secret, or names a place that the model can write.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from rune.host.secrets import collect_secrets, is_secret_name

_PLAIN: Final = frozenset({"LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "COLUMNS", "LINES"})
_FOLDERS: Final = frozenset({"HOME", "TMPDIR", "TMP", "TEMP"})
# Where compilers and their kin look for themselves and for what they share. A place in the workspace is left out:
# there the model could put a program of its own under a known name.
_TOOLCHAINS: Final = frozenset(
    {"SHELL", "CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOPATH", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT",
     "ASDF_DIR", "ASDF_DATA_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
)  # fmt: skip
_USUAL_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

_UNASKING: Final = {
    # A pager waits for a key, an editor for a person. `false` fails at once, and its caller says what it wanted.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    # Notices of new versions: a connection, and words that are not the answer.
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NPM_CONFIG_FUND": "false",
    # Colours would reach the model as escapes.
    "NO_COLOR": "1",
    # Runners that watch files by default run once and end (react-scripts, for one), snapshots are compared and never
    # written, progress bars stay away. A suite that skips tests in CI skips them here too, and says so.
    "CI": "true",
    # Into a pipe Python writes 8 KB at a time: nothing to see meanwhile, and lost when it is killed.
    "PYTHONUNBUFFERED": "1",
    # Whether a module has to be compiled anew is told by its size and second: an edit right after a test would be
    # tested as it was before.
    "PYTHONDONTWRITEBYTECODE": "1",
}

_GIT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "GIT_OPTIONAL_LOCKS": "0",  # a look at the status writes nothing
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone fetches what it lacks, by programs that its configuration names
    "GIT_ALLOW_PROTOCOL": "none",  # a list of what may be spoken, and this is nobody's name
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_SSH_COMMAND": "false",
}
# Stronger than the repository's own configuration.
_GIT_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "gpg.program": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "submodule.recurse": "false",
    "diff.submodule": "short",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.bareRepository": "explicit",  # a folder of the project may look like a repository, with its own configuration
}


def command_environment(
    environ: Mapping[str, str], *, writable: Collection[Path], secrets: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment for a command, made of Rune's own.

    `writable` are the folders that the model may write: nothing in `PATH` lies in one, and no toolchain's home.
    `secrets` are values that are known from elsewhere; a variable that holds one is left out.
    """
    roots = [os.path.realpath(folder) for folder in writable]
    known = [secret for secret in secrets if secret]
    kept: dict[str, str] = {}
    for name, value in environ.items():
        if not _may_pass(name, value, roots) or is_secret_name(name) or collect_secrets({name: value}, {}):
            continue
        if not any(secret in value for secret in known):
            kept[name] = value
    return {**kept, "PATH": _path(environ.get("PATH", ""), roots), **_UNASKING}


def git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a command's environment for Rune's own git: no configuration but the repository's, and of that nothing
    by which it would start a program, wait for a person or use the network.

    `diff`, `log` and `show` still need `--no-ext-diff --no-textconv`: the setting that takes `diff.external` away
    makes git 2.39 fail. What nothing stops has to be looked for in the repository's configuration and refused
    (`filter.*`, aliases; threats T5). The person's name is not known to this git: a commit gives it.
    """
    settings: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS))}
    for number, (key, value) in enumerate(_GIT_SETTINGS.items()):
        settings[f"GIT_CONFIG_KEY_{number}"] = key
        settings[f"GIT_CONFIG_VALUE_{number}"] = value
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {**kept, **_GIT, **settings}


def _may_pass(name: str, value: str, roots: list[str]) -> bool:
    if "\0" in value or not value:
        return False
    if name in _PLAIN or name.startswith("LC_"):
        return True
    if name in _FOLDERS:
        return os.path.isabs(value)  # noqa: PTH117 - a text as it came, not yet a path
    return name in _TOOLCHAINS and _is_outside(value, roots)


def _path(value: str, roots: list[str]) -> str:
    """Return a search path with only what cannot be written by the model, in the same order, each once."""
    entries = dict.fromkeys(entry for entry in value.split(os.pathsep) if _is_outside(entry, roots))
    return os.pathsep.join(entries) or _USUAL_PATH


def _is_outside(folder: str, roots: list[str]) -> bool:
    """Say whether a path is absolute and lies, its links followed, in none of the roots. As it is written it must not
    lie there either: a link in the workspace can be pointed elsewhere.
    """
    if not os.path.isabs(folder):  # noqa: PTH117 - a text as it came, not yet a path
        return False
    spellings = (os.path.realpath(folder), os.path.normpath(folder))
    return not any(os.path.commonpath((root, spelling)) == root for root in roots for spelling in spellings)
