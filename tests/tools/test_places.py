from pathlib import Path

import pytest

from rune.host.paths import Home
from rune.tools.places import Places, Use, folded, own_folders

WS = Path("/home/me/shop")
PLACES = Places(
    reading=(Path("/home/me"), Path("/srv/scratch")),
    writing=(WS, Path("/home/me/notes")),
    own=own_folders(
        Home(
            config_dir=Path("/home/me/.config/rune"),
            data_dir=Path("/home/me/.local/share/rune"),
            state_dir=Path("/home/me/.local/state/rune"),
        )
    ),
)


def verdict(use: Use, path: str) -> str:
    return PLACES.ruling(use, WS / path).verdict


@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        "README.md",
        "environment.py",
        "idea.txt",
        "grid_1.py",
        "pem.py",
        "my.env.py",
        "githooks/x",
        "agents/md",
        "id_map.py",
        "id_rs.txt",
        "credentials_view.py",
        "credentials.py",
        "test_credentials.json.py",
        ".env.example",
        ".env.local.sample",
        ".env-template",
        ".ENV.Dist",
        ".environment",
    ],
)
def test_files_of_a_project_may_be_read_and_written(path: str) -> None:
    assert (verdict("read", path), verdict("write", path)) == ("allow", "allow")


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        ".env-prod",
        ".env_prod",
        ".env.example.local",
        ".env.examples",
        "deep/below/.env",
        "deep/.env/.env.example",
        ".ENV",
        ".e\u200bnv",
        ".env.",
        "key.pem",
        "tls/Key.PEM",
        "id_rsa",
        "id_rsa_work",
        "id_ed25519.pub",
        "id_ecdsa_sk",
        "id_dsa",
        "credentials",
        "credentials.yaml",
        "credentials.json",
        "Credentials/any.txt",
        ".netrc",
        ".ssh/config",
        ".aws/config",
        ".kube/config",
        ".config/gcloud/access_tokens.db",
        ".docker/config.json",
        ".local/share/keyrings/login.keyring",
        "passwords.kdbx",
        ".mozilla/firefox/abc.default/cookies.sqlite",
        "Library/Application Support/Google/Chrome Beta/Default/Cookies",
        ".\uff45nv",
    ],
)
def test_what_may_hold_secrets_is_neither_read_nor_written(path: str) -> None:
    for use in ("read", "write"):
        ruling = PLACES.ruling(use, WS / path)
        assert ruling.verdict == "deny"
        assert ruling.reason.startswith("Access denied: ")
        assert "is protected: it may hold secrets" in ruling.reason


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/self/environ", "/sys/kernel", "/dev/sda", "/ETC/shadow", "/etc"]
)
def test_the_system_is_closed_even_where_somebody_opened_all(path: str) -> None:
    everything = Places(reading=(Path("/"),), writing=(Path("/"),), own=())
    for use in ("read", "write"):
        assert "is protected: it belongs to the system" in everything.ruling(use, Path(path)).reason


def test_secrets_of_the_home_are_closed_where_the_home_is_open() -> None:
    for path in (
        ".ssh/id_ed25519",
        ".gnupg/x",
        ".aws/credentials",
        ".config/chromium/Default/Login Data",
        ".Ssh/known_hosts",
    ):
        assert PLACES.ruling("read", Path("/home/me") / path).verdict == "deny"
    assert PLACES.ruling("read", Path("/home/me/other/a.py")).verdict == "allow"


@pytest.mark.parametrize("path", [".config/rune/config.yaml", ".local/share/rune/journal/a.jsonl", ".LOCAL/state/Rune"])
def test_what_is_runes_own_is_closed(path: str) -> None:
    for use in ("read", "write"):
        ruling = PLACES.ruling(use, Path("/home/me") / path)
        assert (ruling.verdict, "belongs to Rune itself" in ruling.reason) == ("deny", True)


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "vendor/x/.git/config",
        ".GIT/config",
        ".g\u200cit/config",
        ".git /config",
        "GIT~1/config",
        ".rune/config.yaml",
        "AGENTS.md",
        "docs/Agents.MD",
        "CLAUDE.md",
        ".bashrc",
        ".bash_profile",
        ".zshrc",
        ".profile",
        ".config/fish/config.fish",
        ".vscode/tasks.json",
        ".idea/workspace.xml",
        ".vimrc",
        ".exrc",
        ".dir-locals.el",
        ".envrc",
        "sub/.envrc",
        ".github/workflows/ci.yml",
        ".gitea/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        ".travis.yml",
        "Jenkinsfile",
        "azure-pipelines.yml",
        ".pre-commit-config.yaml",
    ],
)
def test_what_tells_other_programs_what_to_do_is_always_asked_for(path: str) -> None:
    ruling = PLACES.ruling("write", WS / path)
    assert ruling.verdict == "ask"
    assert "is protected" in ruling.reason


def test_what_is_asked_for_in_writing_may_be_read() -> None:
    assert {verdict("read", path) for path in (".git/config", "AGENTS.md", ".github/workflows/ci.yml")} == {"allow"}
    assert verdict("read", ".envrc") == "deny"
    assert verdict("write", ".git/credentials") == "deny"
    assert verdict("write", ".envrc/.env") == "deny"


def test_a_place_outside_is_refused_with_the_folders_inside() -> None:
    assert PLACES.ruling("write", Path("/home/me/shop-evil/a.py")).reason == (
        "Access denied: /home/me/shop-evil/a.py is outside the folders you may write: /home/me/shop, /home/me/notes. "
        "Write inside one of those instead."
    )
    assert PLACES.ruling("read", Path("/opt/x")).reason == (
        "Access denied: /opt/x is outside the folders you may read: /home/me/shop, /home/me/notes, /home/me, "
        "/srv/scratch. Read inside one of those instead."
    )
    nothing = Places(reading=(WS,), writing=(), own=())
    assert nothing.ruling("write", WS / "a").reason.endswith("the folders you may write: none.")


def test_a_folder_that_was_opened_may_be_called_like_a_secret() -> None:
    service = Path("/home/me/credentials-service")
    places = Places(reading=(), writing=(service,), own=())
    assert places.ruling("write", service / "main.py").verdict == "allow"
    assert places.ruling("read", service / "credentials.json").verdict == "deny"
    ssh = Path("/home/me/.ssh")
    assert Places(reading=(ssh,), writing=(), own=()).ruling("read", ssh / "config").verdict == "deny"


def test_names_that_a_file_system_takes_for_one_are_one() -> None:
    assert len({folded(name) for name in (".git", ".GIT", ".Git", ".git.", ".git ", ".g\u200bi\ufe0ft")}) == 1
    assert folded("e\u0301") == folded("É")
    assert folded("..") == ".."
    assert folded(".git") != folded(".gít")


def test_patterns_for_other_programs_name_what_is_below_their_folder() -> None:
    whole = PLACES.secret_globs(WS)
    assert {"**/.env", "**/.env.*", "**/id_rsa*", "**/.ssh", "**/.config/gcloud", "**/Library/Keychains"} <= set(whole)
    assert "/gcloud" not in whole
    home = PLACES.secret_globs(Path("/home/me"))
    assert {"/.config/rune", "/.local/share/rune", "/.local/state/rune"} <= set(home)
    assert {"/gcloud", "/sops/age", "/google-chrome*", "/rune"} <= set(PLACES.secret_globs(Path("/home/me/.config")))
    assert "/keyrings" in PLACES.secret_globs(Path("/home/me/.Local/Share"))
    odd = Places(reading=(), writing=(WS,), own=(WS / "a[b]*" / "!c",))
    assert r"/a\[b\]\*/\!c" in odd.secret_globs(WS)
    assert "/etc" in Places(reading=(Path("/"),), writing=(), own=()).secret_globs(Path("/"))
