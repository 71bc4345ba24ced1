"""What the app shows of tools, compared with pictures (pictures.py says how). No card in them tells a time."""

from pathlib import Path

from rune.models.scripted import says
from rune.tui.widgets.choices import READING_SECONDS
from tests.fakes.clock import CountedClock
from tests.tui.pictures import DARK, LIGHT, NARROW, PLAIN, USUAL, Look, Shows, in_looks
from tests.tui.stage import Stage
from tests.tui.tool_stage import MODEL, calls

RIVERS = """\
RIVERS = {
    "Elbe": 1094,
    "Danube": 2850,
    "Rhine": 1232,
}


def longest() -> str:
    return max(RIVERS, key=RIVERS.__getitem__)
"""
CHANGE = calls(
    "edit_file",
    "I correct it.",
    path="rivers.py",
    edits=[
        {"search": '    "Elbe": 1094,', "replace": '    "Elbe": 1112,\n    "Oder": 866,'},
        {"search": "def longest()", "replace": "def longest_river()"},
    ],
)


@in_looks((NARROW, DARK), (USUAL, DARK), (USUAL, PLAIN))
def test_a_change_asks_and_shows_what_it_would_do(shows: Shows, look: Look, folder: Path) -> None:
    (folder / "rivers.py").write_text(RIVERS)

    async def scene(at: Stage) -> None:
        await at.say("the Elbe is longer")
        await at.until_shown("waiting for you", "n no")
        await at.idle()

    assert shows(scene, look, [CHANGE], (MODEL,))


@in_looks((NARROW, PLAIN), (USUAL, LIGHT))
def test_a_diff_opens_in_the_transcript(shows: Shows, look: Look, folder: Path, clock: CountedClock) -> None:
    (folder / "rivers.py").write_text(RIVERS)

    async def scene(at: Stage) -> None:
        await at.say("the Elbe is longer")
        await at.until_shown("waiting for you", "n no")
        await at.idle()
        clock.advance(READING_SECONDS)
        await at.pilot.press("n")
        await at.until_shown("Then not.")
        await at.idle()
        await at.pilot.press("ctrl+o")
        await at.until_shown("1112")

    assert shows(scene, look, [CHANGE, says("Then not.")], (MODEL,))


@in_looks((NARROW, DARK))
def test_what_is_typed_for_a_shell_says_that_it_runs_as_the_person(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.type("!ls -la")
        await at.until_shown("shell")

    assert shows(scene, look)
