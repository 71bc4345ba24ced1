"""Secrets and their masks in what a model asks for."""

from rune.records.tools import ToolCall
from rune.text.masking import Masker
from rune.turn.guarded import HOLDS_MARKER, SECRETIVE, guarded, refusal

MASK = Masker([("API_TOKEN", "s3cr3t-value-42")]).mask


def call(**arguments: object) -> ToolCall:
    return ToolCall(id="call_1", name="write_file", arguments=arguments)


def test_a_secret_anywhere_in_the_arguments_is_masked_and_told() -> None:
    kept, secret = guarded(call(path="a", edits=[{"search": "x", "replace": "k = s3cr3t-value-42"}]), MASK)
    assert secret
    assert kept.arguments == {"path": "a", "edits": [{"search": "x", "replace": "k = [secret:API_TOKEN]"}]}
    assert refusal(kept, "edit", secret=True) == SECRETIVE


def test_plain_arguments_stay_as_they_are() -> None:
    given = call(path="a", count=3, deep={"x": [1, None, True, 2.5]})
    assert guarded(given, MASK) == (given, False)
    assert refusal(given, "edit", secret=False) == ""


def test_a_lone_surrogate_is_made_storable_and_is_no_secret() -> None:
    kept, secret = guarded(call(path="a\ud800"), MASK)
    assert (kept.arguments, secret) == ({"path": "a\ufffd"}, False)


def test_a_mask_is_never_written_but_may_be_looked_for() -> None:
    given = call(text="token = [secret:API_TOKEN]")
    assert refusal(given, "edit", secret=False) == HOLDS_MARKER
    assert refusal(given, "run", secret=False) == HOLDS_MARKER
    assert refusal(given, "read", secret=False) == ""
