"""Which of the surroundings are secrets, and which only sound so."""

import pytest

from rune.host.secrets import collect_secrets, is_secret_name


def collected(name: str, value: str) -> list[str]:
    return [secret.value for secret in collect_secrets({name: value}, {})]


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "PGPASS", "MYSQL_PWD", "client_secret", "HTTP_AUTH"),
        *("AWS_CREDS", "forge.token", "AUTHORIZATION", "PRIVATE_KEY", "MyPassphrase", "SENTRY_DSN", "JWT"),
    ],
)
def test_a_name_that_sounds_secret_gives_its_value(name: str) -> None:
    assert is_secret_name(name)
    assert collected(name, "q8Zp2xLm") == ["q8Zp2xLm"]


@pytest.mark.parametrize(
    "name", ["HOME", "GIT_AUTHOR_NAME", "GIT_AUTHORS", "PWD", "OLDPWD", "KEYBOARD", "TOKENIZERS_PARALLELISM", "LANG"]
)
def test_a_name_that_only_contains_such_letters_does_not(name: str) -> None:
    assert not is_secret_name(name)
    assert collected(name, "Anna Example") == []


@pytest.mark.parametrize(
    "value",
    [
        *("true", "1234567", "", "       \n", "required", "Password", "changeme"),
        *("/run/user/1000/keyring/ssh", "/var/tmp/ssh-XXqpZ81/agent.42", "~/.ssh/id_ed25519", "./keys/dev.pem"),  # noqa: S108 - nothing is opened there
        *(r"C:\Users\anna\key.pem", "https://login.example.com/oauth", "2026-11-30T14:00:00Z", "2026-11-30"),
    ],
)
def test_a_value_that_plainly_is_no_secret_is_left_out(value: str) -> None:
    assert collected("SOME_KEY", value) == []


@pytest.mark.parametrize("value", ["12345678", "/9j4AAQSkZJRgABAQ", "a b c d e f", "https://h/?sig=abc", "pässword1"])
def test_any_other_value_of_eight_characters_counts(value: str) -> None:
    assert collected("SOME_KEY", value) == [value]


def test_blanks_round_a_value_are_no_part_of_it() -> None:
    assert collected("SOME_KEY", "  q8Zp2xLm\n") == ["q8Zp2xLm"]


def test_the_password_of_an_address_counts_whatever_the_name_is_and_in_both_spellings() -> None:
    assert collected("DATABASE_URL", "postgres://me:hunter22@db/x") == ["hunter22"]
    assert collected("BROKER", "amqp://me:p%40ss%2Fword@h") == ["p%40ss%2Fword", "p@ss/word"]
    assert collected("DATABASE_URL", "postgres://me:short@db/x") == []


def test_a_value_that_is_no_address_though_it_looks_like_one_is_judged_by_its_name() -> None:
    assert collected("SOME_KEY", "abc://[broken") == ["abc://[broken"]


def test_environment_comes_before_configuration_and_each_value_once() -> None:
    found = collect_secrets({"A_KEY": "same-value"}, {"b.token": "same-value", "c.token": "other-value"})
    assert [(secret.name, secret.value) for secret in found] == [("A_KEY", "same-value"), ("c.token", "other-value")]


def test_an_environment_of_forty_secrets_gives_forty() -> None:
    environ = {f"SERVICE_{number}_TOKEN": f"canary-{number:04}" for number in range(40)} | {"PATH": "/usr/bin:/bin"}
    assert len(collect_secrets(environ, {})) == 40


def test_a_secret_shows_its_name_and_keeps_its_value_to_itself() -> None:
    (secret,) = collect_secrets({"A_KEY": "q8Zp2xLm"}, {})
    assert repr(secret) == "Secret('A_KEY')"
    assert "q8Zp" not in f"{secret} {[secret]}"
    assert secret == ("A_KEY", "q8Zp2xLm")


def test_a_variable_that_the_configuration_names_counts_whatever_it_looks_like() -> None:
    environ = {"LAB": "changeme-or-not", "LAB_2": "/etc/passwords", "SHORT": "abc", "PLAIN": "undefined"}
    found = collect_secrets(environ, {}, named=("LAB", "LAB_2", "SHORT", "PLAIN", "MISSING"))
    assert {secret.value for secret in found} == {"changeme-or-not", "/etc/passwords", "undefined"}
    assert collect_secrets(environ, {}) == ()
