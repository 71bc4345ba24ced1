"""Secrets in every dress are replaced by their names; what is no secret stays."""

import base64
import hashlib
import json
import string
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.host.secrets import Secret
from rune.text.masking import Masker, forms_of
from rune.text.secret_shapes import SHAPES, looks_random


def drawn(number: int, alphabet: str = string.ascii_letters + string.digits, length: int = 24) -> str:
    """Return a value that looks drawn by lot and is always the same."""
    digest = b"".join(hashlib.sha256(f"{number}:{part}".encode()).digest() for part in range(4))
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


ALPHABETS = (string.hexdigits[:16], string.ascii_letters + string.digits + "-_", string.printable[:94])
PLANTED = [
    Secret(f"SECRET_{number}", drawn(number, ALPHABETS[number % 3], 8 + number % 33)) for number in range(57)
] + [
    Secret("WITH_SPACES", 'pä ss/w%rd "quoted" \\ & more'),
    Secret("TWO_LINES", "first line of the secret\nsecond line of the secret"),
    Secret("EIGHT", "q7#Zp!x2"),
]
OF_ALL = Masker(PLANTED)
ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda value: value,
    "base64 behind nothing": lambda value: base64.b64encode(f"{value}:x".encode()).decode(),
    "base64 behind one byte": lambda value: base64.b64encode(f"u{value}:x".encode()).decode(),
    "base64 behind two bytes": lambda value: base64.urlsafe_b64encode(f"u:{value}".encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "url": lambda value: quote(value, safe=""),
    "form": quote_plus,
    "json": lambda value: json.dumps({"k": value}),
    "json in json": lambda value: json.dumps(json.dumps({"k": value})),
    "reversed": lambda value: value[::-1],
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_sixty_planted_secrets_are_found_in_every_encoding(encode: Callable[[str], str]) -> None:
    for secret in PLANTED:
        masked = OF_ALL.mask(f"before {encode(secret.value)} after")
        assert f"[secret:{secret.name}]" in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        assert not any(form in masked for form in forms_of(secret.value))


def test_the_longest_of_two_secrets_wins_and_several_in_a_line_are_all_found() -> None:
    masker = Masker([Secret("SHORT", "abcdefgh1"), Secret("LONG", "abcdefgh12345")])
    assert masker.mask("abcdefgh12345 abcdefgh1x abcdefgh12") == "[secret:LONG] [secret:SHORT]x [secret:SHORT]2"


def test_a_value_of_fewer_than_eight_characters_is_left() -> None:
    assert Masker([("PIN", "1234567")]).mask("call 1234567") == "call 1234567"


def test_the_same_value_under_two_names_is_called_by_the_first() -> None:
    assert Masker([Secret("A", "abcdefgh1"), Secret("B", "abcdefgh1")]).mask("abcdefgh1") == "[secret:A]"


def test_a_name_cannot_break_the_marker() -> None:
    assert Masker([Secret("a]b c\n", "abcdefgh1")]).mask("abcdefgh1") == "[secret:a_b_c_]"


def test_a_marker_that_was_written_by_hand_protects_nothing() -> None:
    masked = Masker([Secret("KEY", "abcdefgh12345")]).mask("[secret:abcdefgh12345] [secret:x abcdefgh12345]")
    assert "abcdefgh12345" not in masked


def test_a_marker_is_left_as_it_is_though_its_name_holds_a_secret() -> None:
    masker = Masker([Secret("MY_TOKEN_NAME", "MY_TOKEN")])
    assert masker.mask("x MY_TOKEN") == "x [secret:MY_TOKEN_NAME]"
    assert masker.mask("x [secret:MY_TOKEN_NAME]") == "x [secret:MY_TOKEN_NAME]"


# Put together here, so that nobody's scanner takes this file for a leak.
ALNUM36 = drawn(1, length=36)
SHAPED = {
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----",
    "aws-access-key-id": "AKIA" + "Q2W3E4R5T6Y7ABCD",
    "github-token": "ghp_" + ALNUM36,
    "gitlab-token": "glpat-" + drawn(2, length=20),
    "slack-token": "xoxb-" + "123456789012-" + drawn(3, length=24),
    "openai-key": "sk-proj-" + drawn(4, length=48),
    "anthropic-key": "sk-ant-api03-" + drawn(5, length=40),
    "google-key": "AIza" + drawn(6, length=35),
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + drawn(7, length=43),
    "access-token": "hf_" + drawn(8, length=34),
}


@pytest.mark.parametrize(("name", "token"), SHAPED.items(), ids=SHAPED.keys())
@pytest.mark.parametrize("around", ["{}", "x {} y", 'key="{}",', "({})", "a={}\n", "https://h/?t={}&u=1"])
def test_a_token_of_a_known_shape_is_masked_whoever_it_belongs_to(name: str, token: str, around: str) -> None:
    masked = Masker().mask(around.format(token))
    assert f"[secret:{name}]" in masked
    assert token[-12:] not in masked
    assert masked == around.format(f"[secret:{name}]")


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("Authorization: Bearer abcdEFGH1234.zzzz", "Authorization: Bearer [secret:authorization]"),
        ('{"Authorization": "Basic dXNlcjpwYXNzd29yZA=="}', '{"Authorization": "Basic [secret:authorization]"}'),
        ("curl -H 'X-Api-Key: 9f8e7d6c5b4a39281706f5e4'", "curl -H 'X-Api-Key: [secret:password]'"),
        ("DB_PASSWORD=Tr0ub4dor3x", "DB_PASSWORD=[secret:password]"),
        ('password: "k9$Wq!zR2#"', 'password: "[secret:password]"'),
        ("config['secret_key'] = 'z8Kd03jfLq2Mx7Vb'", "config['secret_key'] = '[secret:password]'"),
        ("postgres://shop:hunter2@db.local/shop", "postgres://shop:[secret:url-password]@db.local/shop"),
        (
            "git clone https://me:s3cr3t@example.org/x.git",
            "git clone https://me:[secret:url-password]@example.org/x.git",
        ),
        ("sent with bearer 0f9e8d7c6b5a49382716", "sent with bearer [secret:bearer]"),
    ],
)
def test_a_value_in_the_place_of_a_secret_is_masked_and_its_surroundings_stay(line: str, masked: str) -> None:
    assert Masker().mask(line) == masked


def test_a_private_key_that_breaks_off_is_masked_as_far_as_it_goes() -> None:
    body = "\n".join(drawn(number, length=64) for number in range(3))
    masked = Masker().mask(f"log:\n-----BEGIN PRIVATE KEY-----\n{body}\nend of the log")
    assert masked == "log:\n[secret:private-key]\nend of the log"


BENIGN = """
The password must have at least eight characters, one of them a digit.
Please reset your password: open Settings, choose Security, then follow the link.
password = getpass.getpass("Password: ")
password: str = field(default="")
token = self._lexer.next_token()
token: NextToken2Kind = tokens[index2]
if token == TokenKind.OPEN_PAREN_V2: return None
secret = os.environ["MY_SECRET_1"]
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "")
api_key: ${OPENAI_API_KEY}
api_key=<your-api-key-2024>
Authorization: Bearer $GITHUB_TOKEN
Authorization: Bearer <token>
headers = {"Authorization": f"Bearer {token}"}
Bearer authentication-with-short-lived-tokens is described in section 4.
max_tokens: 4096
token_count=123456789, prompt_tokens: 1200000
token_expires: 2026-11-30T14:12:00Z
pwd=/home/anna/projects/shop2/src
credentials: file:///etc/app/credentials.json
postgres://user:password@localhost:5432/db
redis://:$REDIS_PASS@cache:6379
see http://localhost:8080/a@b and https://example.org:443/x?y=1@2
mailto:anna@example.org, boris@example.org:25
sk-loading-spinner-container-with-dots { display: none; }
task-1234567890-abcdef is done
The header -----BEGIN PRIVATE KEY----- starts a key file.
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
id: 550e8400-e29b-41d4-a716-446655440000
integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
AKIA is the prefix of an access key id; ghp_ and glpat- are those of tokens.
cache_key = f"user:{user_id}:v2:{lang}"
primary_key: order_id2, foreign_key: customer_id
private_key_path: ~/.ssh/id_ed25519
access_key_rotation: every-90-days
keyboard: us, keymap=de-latin1-nodeadkeys
tokenizer: BertWordPieceTokenizer
passwd:x:1000:1000:Anna,,,:/home/anna:/bin/bash
password=changeme
""".strip().splitlines()


@pytest.mark.parametrize("line", BENIGN)
def test_ordinary_prose_and_code_are_left_as_they_are(line: str) -> None:
    assert OF_ALL.mask(line) == line


@given(
    st.lists(st.sampled_from([*SHAPED.values(), *BENIGN, *(secret.value for secret in PLANTED[:9]), "\n", "x", "="]))
)
def test_masking_twice_is_masking_once(parts: list[str]) -> None:
    once = OF_ALL.mask("".join(parts))
    assert OF_ALL.mask(once) == once


@given(st.text(max_size=80))
def test_any_text_is_masked_without_an_error_and_twice_is_once(text: str) -> None:
    assert OF_ALL.mask(OF_ALL.mask(text)) == OF_ALL.mask(text)


HOSTILE = {
    "keywords": "token=",
    "keywords without a value": "password   ",
    "open quotes": "pwd='a\"",
    "key headers": "-----BEGIN A B PRIVATE KEY-----\n",
    "half addresses": "://a:b",
    "half tokens": "eyJaaaaaaaaaaa.",
    "prefixes": "sk-ghp_AKIA",
    "authorization": "authorization: basic ",
    "almost a known secret": PLANTED[1].value[:-1],
    "one letter": "a",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_grows_with_the_length_of_a_hostile_text_and_not_with_its_square(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            OF_ALL.mask(text)
            best = min(best, time.process_time() - start)
        return best

    small = seconds(20_000)
    # Sixteen times the text: 16 where time is linear, 256 where it is quadratic.
    assert seconds(320_000) < 80 * max(small, 0.002)


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_ten_megabytes_of_a_hostile_text_take_less_than_half_a_minute(unit: str) -> None:
    start = time.process_time()
    OF_ALL.mask(unit * (10_000_000 // len(unit)))
    assert time.process_time() - start < 30


def test_random_looking_values_are_told_from_names() -> None:
    assert looks_random("aB3dE5fG7hJ9")
    assert looks_random("Tr0ub4dor3x")
    assert looks_random("9f8e7d6c5b4a39281706f5e4")
    assert not looks_random("correct-horse-battery-staple")
    assert not looks_random("sha256_digest_version2")
    assert not looks_random("2026-11-30T14:12:00Z")
    assert not looks_random("aaaaaaaa1111")


def test_no_two_shapes_are_told_apart_by_nothing_but_their_name() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
