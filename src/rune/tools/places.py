"""Which places tools may read and write: pure rules over real, absolute paths (design: tools.md, Policy and Sandbox).

Three answers: `allow` (the permission mode and the person's rules decide on), `ask` (a person is always asked, whatever
the rules say) and `deny`. A rule about a name holds whether or not the file exists. Names are compared as a file system
that folds case, normalises or ignores characters would: there two names are one file.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from rune.host.paths import Home, storable_path

Verdict = Literal["allow", "ask", "deny"]
Use = Literal["read", "write"]

# Each is a chain of names, `*` and `?` within a name; what is below it is meant too. These count below the folder that
# a person opened, which may itself be called "credentials-service":
_SECRET_NAMES: Final = (
    (".env", ".env.*", ".env-*", ".env_*", ".envrc", ".netrc", "_netrc"),
    ("*.pem", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*"),
    ("credentials", "credentials.json", "credentials.y*ml", "credentials.toml", "credentials.ini", "credentials.cfg"),
    ("credentials.csv", "credentials.xml", "credentials.txt", "credentials.db", "credentials.enc", "credentials.bak"),
)
# What only shows how to write one. Read by its ending alone: `.env.local.example` too.
_SAMPLE: Final = re.compile(r"\.env[._-](?:[^/]*[._-])?(?:example|sample|template|tmpl|dist|schema)")
# and these anywhere in the path.
_SECRETS: Final = (
    # Keys and passwords of a person.
    (".ssh", ".gnupg", ".gpg", ".password-store", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".vault-token"),
    # Clouds, clusters, forges.
    (".aws", ".azure", ".kube", ".oci", ".boto", ".s3cfg", ".config/gcloud", ".config/doctl", ".config/rclone"),
    (".config/gh", ".config/hub", ".config/glab-cli", ".config/op", ".docker/config.json", ".terraform.d", ".gsutil"),
    # Keyrings.
    (
        ".local/share/keyrings",
        ".local/share/kwalletd",
        "Library/Keychains",
        ".config/keepassxc",
        "*.kdbx",
        "*.keychain",
    ),
    (".config/Bitwarden", ".config/1Password", "*.keychain-db", ".config/sops/age", ".config/age"),
    # Profiles of browsers and mail programs.
    (".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/BraveSoftware"),
    (".config/microsoft-edge*", ".config/vivaldi*", ".config/opera*", ".librewolf", ".zen", "snap/firefox"),
    ("snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".var/app/org.chromium.Chromium"),
    ("Library/Application Support/Google/Chrome*", "Library/Application Support/Firefox", "Library/Safari"),
    ("Library/Application Support/Chromium", "Library/Application Support/BraveSoftware", "Library/Cookies"),
    ("Library/Application Support/Microsoft Edge", "Library/Application Support/Arc"),
)
_SYSTEM: Final = ("/etc", "/proc", "/sys", "/dev", "/run/secrets", "/var/run", "/private/etc", "/private/var/run")
_SYSTEM_NAMES: Final = tuple(tuple(folder.split("/")[1:]) for folder in _SYSTEM)  # folded as they are
_HOOKS: Final = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch"),
    *("pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg"),
    *("proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update"),
)
_ASKING: Final = (
    # What git runs or obeys.
    (".git", "git~1", ".gitmodules", ".gitattributes", ".gitconfig", ".config/git", ".husky", "lefthook*.y*ml"),
    (".pre-commit-config.yaml", ".pre-commit-hooks.yaml", ".hg", ".hgrc", ".svn"),
    # A repository without a `.git`: git takes any folder with a HEAD for one, also in the midst of another.
    (".bare", "*.git", "commondir", "config.worktree", *(f"hooks/{name}" for name in _HOOKS)),
    # What instructs Rune, and others like it.
    (".rune", "AGENTS*.md", "CLAUDE*.md", "GEMINI.md", ".claude", ".mcp.json", ".cursor", ".cursorrules", ".codex"),
    (".gemini", ".opencode", "opencode.json*", ".continue", ".roo", ".roorules*", ".kiro", ".junie", ".kilocode"),
    (".amazonq", ".windsurf", ".windsurfrules", ".clinerules", ".aider*", ".goose", ".goosehints", ".augment", ".trae"),
    (".github/copilot-instructions.md", ".github/instructions", ".github/prompts", ".github/chatmodes", ".copilot"),
    # Start files of shells and sessions.
    (".envrc", ".envrc.*", ".direnvrc", ".config/direnv", ".bashrc*", ".bash_*", ".profile", ".zshrc*", ".zshenv"),
    (".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc"),
    (".config/fish", ".config/bash*", ".oh-my-zsh", ".zsh_*", ".crontab"),
    (".xprofile", ".xinitrc", ".xsession*", ".xsessionrc", ".pam_environment", ".config/autostart", ".config/systemd"),
    (".config/environment.d", ".tmux.conf", ".config/tmux", ".screenrc", "Library/LaunchAgents"),
    # Start files of editors and of programs that run what stands there.
    (".vscode", ".idea", ".fleet", ".zed", ".vim", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".ideavimrc"),
    (".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".dir-locals*.el", ".nanorc", ".config/helix", ".helix"),
    ("*.code-workspace", "*.sublime-project", ".devcontainer", ".devcontainer.json", ".ripgreprc", ".pdbrc*"),
    (".gdbinit", ".lldbinit", ".irbrc", ".pryrc", ".Rprofile", ".psqlrc", ".sqliterc", "sitecustomize.py"),
    ("usercustomize.py", ".pythonrc*", ".lvimrc", ".luarc.json", ".clangd", ".theia", ".vs"),
    # What is started by its name, or by whatever else is started, without being looked at.
    (".venv", "venv", "site-packages", "*.pth", "node_modules/.bin", ".npmrc", ".yarnrc*", ".yarn/releases"),
    (".yarn/plugins", ".pnpmfile.cjs", ".cargo/config*", "rust-toolchain*", ".bazelrc", ".mvn", "mise.toml"),
    (".mise*", ".config/mise", ".local/bin", ".local/lib", ".local/share/applications", ".local/share/systemd"),
    # What continuous integration runs.
    (".github/workflows", ".github/actions", ".gitea", ".forgejo", ".gitlab-ci*", ".gitlab/ci", ".circleci", ".ci"),
    (".travis.y*ml", "appveyor.y*ml", ".appveyor.y*ml", "azure-pipelines*", ".azure-pipelines", "Jenkinsfile*"),
    ("bitbucket-pipelines.y*ml", ".drone.*", ".woodpecker*", ".buildkite", ".semaphore", ".cirrus.*", ".teamcity"),
    (".builds", ".build.y*ml", "cloudbuild.y*ml", "buildspec.y*ml", ".tekton"),
)
# Drawn as nothing, and ignored in names by some file systems: zero width, direction, soft hyphen, variation selectors.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_GLOB: Final = re.compile(r"[\\*?\[\]{}!]")


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one use of one place, and why in a sentence for the model and the person ("" when allowed)."""

    verdict: Verdict
    reason: str = ""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The folders, real and absolute, that may be read (`reading`) and written (`writing`; these are read too), and
    `own`: where Rune keeps its journal and configuration, which no tool touches. `home` is the person's.
    """

    reading: tuple[Path, ...]
    writing: tuple[Path, ...]
    own: tuple[Path, ...]
    home: Path | None = None

    def ruling(self, use: Use, path: Path) -> Ruling:
        """Rule on a real, absolute path without `.` and `..`: what links lead to has to be found before."""
        names = _names(path)
        if any(_is_below(names, folder) for folder in self.own):
            return _denied(path, "belongs to Rune itself, which no tool may read or write")
        if any(names[: len(above)] == above for above in _SYSTEM_NAMES):
            return _denied(path, "belongs to the system, which no tool may read or write")
        everywhere = tuple(dict.fromkeys((*self.writing, *self.reading)))
        depth = max((len(_folder(folder)) for folder in everywhere if _is_below(names, folder)), default=0)
        asking = self._asking(names) if use == "write" else ""
        secret = _first(_SECRETS, names) or _first(_SECRET_NAMES, _without_samples(names[depth:]))
        if secret and not (asking and names[-1] == ".envrc"):  # may be proposed, unseen
            return _denied(path, f"may hold secrets ({secret}), which no tool may read or write")
        allowed = self.writing if use == "write" else everywhere
        if not any(_is_below(names, folder) for folder in allowed):
            return Ruling(verdict="deny", reason=outside(path, allowed, use))
        if asking:
            return Ruling(
                verdict="ask", reason=f"{storable_path(path)} is protected ({asking}): it says what other programs do"
            )
        return Ruling(verdict="allow")

    def _asking(self, names: tuple[str, ...]) -> str:
        """Return the rule by which a person is asked before a place is written; "" for none."""
        if names[-1:] == ("head",):
            return "HEAD"
        if asking := _first(_ASKING, names):
            return asking
        if self.home is None or not any(self.home.is_relative_to(folder) for folder in self.writing):
            return ""
        # The folder is no project, but all that a person has: what programs are and obey lies in it too.
        if not _is_below(names, self.home):
            return "outside your home"
        first = names[len(_folder(self.home))] if len(names) > len(_folder(self.home)) else ""
        return f"{first} in your home" if first.startswith(".") or first in {"bin", "library"} else ""

    def secret_globs(self, folder: Path) -> tuple[str, ...]:
        """Return patterns as `.gitignore` has them, to be compared without case: below the real `folder` they take out
        all that `ruling` says may not be read, and besides what has no exception in a pattern (`.env.example`).

        For a program that goes through a folder by itself. What is told of is ruled on all the same: a file system
        may take more names for one than a pattern does.
        """
        above = _names(folder)
        chains = (each for groups in (_SECRETS, _SECRET_NAMES) for group in groups for each in group)
        found = dict.fromkeys(glob for chain in chains for glob in _below(chain, above))
        closed = [each for each in (*self.own, *map(Path, _SYSTEM)) if each != folder and each.is_relative_to(folder)]
        return (*found, *(f"/{_GLOB.sub(_escaped, str(each.relative_to(folder)))}" for each in closed))


def own_folders(home: Home) -> tuple[Path, ...]:
    """Return where Rune keeps what is its own."""
    return tuple(dict.fromkeys((home.config_dir, home.data_dir, home.state_dir)))


def outside(path: Path | str, allowed: Iterable[Path], use: Use) -> str:
    """Say that a place is outside, and what is inside."""
    folders = ", ".join(storable_path(folder) for folder in allowed)
    said = f"Access denied: {storable_path(Path(path))} is outside the folders you may {use}: {folders or 'none'}."
    instead = f"{use.capitalize()} inside one of those instead."
    return f"{said} {instead}" if folders else said


@lru_cache(maxsize=16_384)
def folded(name: str) -> str:
    """Return what is the same for all names that some file system takes for one: case, composition, compatibility
    forms, invisible characters, dots and spaces at the end.
    """
    visible = _INVISIBLE.sub("", name)
    form = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return form.rstrip(". ") or form


def _denied(path: Path, why: str) -> Ruling:
    return Ruling(verdict="deny", reason=f"Access denied: {storable_path(path)} is protected: it {why}.")


def _without_samples(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("" if _SAMPLE.fullmatch(name) else name for name in names)


def _below(chain: str, above: tuple[str, ...]) -> Iterator[str]:
    """Give the patterns of a chain of names: all of it, and what is left of it where the folder is in its midst."""
    names = chain.split("/")
    yield f"**/{chain}"
    for part in range(1, len(names)):
        pattern = re.compile("/".join(_form(name) for name in names[:part]))
        if pattern.fullmatch("/".join(above[-part:])):
            yield f"/{'/'.join(names[part:])}"


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found.group()}"


def _names(path: Path) -> tuple[str, ...]:
    return tuple(folded(name) for name in path.parts[1:])


@cache
def _folder(folder: Path) -> tuple[str, ...]:
    return _names(folder)


def _is_below(names: tuple[str, ...], folder: Path) -> bool:
    above = _folder(folder)
    return names[: len(above)] == above


def _first(groups: tuple[tuple[str, ...], ...], names: tuple[str, ...]) -> str:
    """Return the rule with a chain of names that stands first in the path; "" for none."""
    rules, pattern = _compiled(groups)
    found = pattern.search(f"/{'/'.join(names)}/")
    return rules[found.lastindex - 1] if found and found.lastindex else ""


def _form(name: str) -> str:
    return re.escape(folded(name)).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")


@cache
def _compiled(groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    rules = tuple(each for group in groups for each in group)
    forms = ("/".join(_form(name) for name in each.split("/")) for each in rules)
    return rules, re.compile(f"/(?:{'|'.join(f'({form})' for form in forms)})(?=/)")
