"""run_command: what is approved is what runs, and what comes of it is bounded, safe and without secrets."""

import asyncio
import base64
import json
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from rune.errors import AccessDeniedError, DigestMismatchError, FileUnavailableError, InvalidArgumentsError
from rune.text.safe_text import SafeText
from rune.tools.executor import Done
from rune.tools.executors.run_command import RunCommand
from rune.tools.workplace import Workplace
from tests.host.commands import alive, own_descriptors
from tests.tools.executors.places import done, plan, watch, workplace

CANARY = 'q8Zp2x/Lm"K4vT+é'
RUN = RunCommand()

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a warden")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path, secrets={"CANARY": CANARY})


def script(place: Workplace, text: str) -> str:
    """Put a Python program into the folder; return the command that runs it."""
    (place.folder / "script.py").write_text(text)
    return f"{sys.executable} -I -S script.py"


async def stopped(place: Workplace, command: str, *, at: str) -> tuple[Done, float]:
    """Run a command, stop it when it has written `at`; return what came of it and the seconds since then."""
    stop = asyncio.Event()
    when = 0.0

    def look(text: SafeText) -> None:
        nonlocal when
        if at in text and not stop.is_set():
            when = time.monotonic()
            stop.set()

    result = await RUN.execute(await plan(RUN, place, command=command), place, watch(look, stop))
    return result, time.monotonic() - when


async def test_a_command_that_succeeds_says_so_first(place: Workplace) -> None:
    result = await done(RUN, place, command="echo out; echo err >&2")
    first, *output = result.text.splitlines()
    assert first.startswith("exit code 0 (")
    assert sorted(output) == ["err", "out"]
    assert (result.outcome, result.exit_code, result.output) == ("ok", 0, None)


async def test_a_command_that_fails_is_a_result(place: Workplace) -> None:
    result = await done(RUN, place, command="echo no; exit 3")
    assert (result.outcome, result.exit_code) == ("failed", 3)
    assert result.summary.startswith("exit code 3 (")
    assert result.text == f"{result.summary}\nno"


async def test_a_command_without_output_says_that(place: Workplace) -> None:
    assert (await done(RUN, place, command="true")).text.endswith(", no output")


async def test_an_end_by_a_signal_is_named(place: Workplace) -> None:
    result = await done(RUN, place, command="kill -SEGV $$")
    assert (result.outcome, result.exit_code) == ("failed", None)
    assert "signal 11 (SIGSEGV)" in result.summary


async def test_a_command_may_begin_with_a_dash(place: Workplace) -> None:
    result = await done(RUN, place, command="--version")
    assert result.exit_code == 127


async def test_it_has_no_input_and_no_terminal(place: Workplace) -> None:
    result = await done(RUN, place, command="cat; tty; read x < /dev/tty || echo none")
    assert "not a tty" in result.text
    assert "none" in result.text.split("\n")


async def test_it_finds_the_scrubbed_environment(place: Workplace) -> None:
    result = await done(RUN, place, command="env")
    given = {line.partition("=")[0] for line in result.text.splitlines()[1:]}
    assert given <= {*place.environment, "RUNE_COMMAND", "PWD", "SHLVL", "_", "OLDPWD"}


@pytest.mark.parametrize("cwd", ["src", "./src/", "link"])
async def test_it_runs_in_the_folder_that_it_names(place: Workplace, cwd: str) -> None:
    (place.folder / "src").mkdir()
    (place.folder / "link").symlink_to("src")
    for given in (cwd, str(place.folder / "src")):
        assert (await done(RUN, place, command="pwd -P", cwd=given)).text.endswith(f"\n{place.folder}/src")


@pytest.mark.parametrize("cwd", ["..", "/", "/etc", "out", "../home", ".ssh"])
async def test_a_folder_outside_or_protected_is_refused(place: Workplace, cwd: str) -> None:
    (place.folder / "out").symlink_to(place.folder.parent)
    (place.folder / ".ssh").mkdir()
    with pytest.raises(AccessDeniedError):
        await plan(RUN, place, command="ls", cwd=cwd)


async def test_a_folder_that_is_not_there_is_said(place: Workplace) -> None:
    (place.folder / "file").write_text("")
    for cwd in ("nowhere", "file"):
        with pytest.raises(FileUnavailableError):
            await plan(RUN, place, command="ls", cwd=cwd)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ""},
        {"command": " \n\t"},
        {"command": "a\0b"},
        {"command": "\ud800"},
        {"command": "ls", "timeout": 0},
        {"command": "ls", "timeout": 1801},
        {"command": "ls", "cwd": ""},
        {"command": ["ls"]},
        {"cmd": "ls"},
    ],
)
async def test_arguments_that_do_not_fit_are_refused(place: Workplace, arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await RUN.prepare(arguments, place)


async def test_a_plan_shows_exactly_what_would_run(place: Workplace) -> None:
    (place.folder / "src").mkdir()
    this = await plan(RUN, place, command="make all", cwd="src", timeout=7)
    assert this.effect == "make all (in src)"
    assert this.detail == f"folder: {place.folder}/src\nshell: /bin/bash -c\ntime limit: 7 s\n\nmake all"
    assert this.preconditions == {
        "command": "make all",
        "cwd": f"{place.folder}/src",
        "shell": "/bin/bash",
        "seconds": "7",
    }
    assert (this.asks, this.rule, this.touches) == ("", "", ())
    again = await plan(RUN, place, command="make all", cwd="src", timeout=7)
    assert (again.effect, again.detail, again.preconditions) == (this.effect, this.detail, this.preconditions)


async def test_what_a_card_has_no_room_for_is_counted(place: Workplace) -> None:
    this = await plan(RUN, place, command=f"echo {'x' * 200}\nls\nls")
    assert this.effect == f"echo {'x' * 95} [+105 characters] [+2 lines]"
    assert this.detail.endswith(f"\n\necho {'x' * 200}\nls\nls")


async def test_what_cannot_be_seen_is_announced(place: Workplace) -> None:
    assert "invisible" in (await plan(RUN, place, command="ls \u202e tsl")).detail
    assert "invisible" not in (await plan(RUN, place, command="ls\t-l\npwd")).detail


@pytest.mark.parametrize("inside", [True, False])
async def test_a_link_in_the_place_of_the_folder_changes_nothing(place: Workplace, inside: bool) -> None:
    (place.folder / "src").mkdir()
    target = place.folder / "other" if inside else place.folder.parent / "outside"
    target.mkdir()
    this = await plan(RUN, place, command="touch ran", cwd="src")
    (place.folder / "src").rename(place.folder / "away")
    (place.folder / "src").symlink_to("other" if inside else target)
    with pytest.raises(DigestMismatchError, match="Nothing was run"):
        await RUN.execute(this, place, watch())
    assert list(target.iterdir()) == []


async def test_control_sequences_are_shown_by_name(place: Workplace) -> None:
    shown: list[SafeText] = []
    this = await plan(RUN, place, command=r"printf '\033[31mred\033]52;c;aGk=\007 \342\200\256x\n'")
    result = await RUN.execute(this, place, watch(shown.append))
    expected = "\\x1b[31mred\\x1b]52;c;aGk=\\x07 <U+202E>x"
    assert result.text.endswith(expected)
    assert shown[-1] == expected


def every_form(secret: str) -> list[str]:
    data = secret.encode()
    return [
        secret,
        base64.b64encode(data).decode(),
        data.hex(),
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        secret[::-1],
    ]


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def test_secrets_in_six_encodings_split_anywhere_reach_nobody(place: Workplace, tmp_path: Path) -> None:
    text = "".join(f"line {number} {form} end\n" for number, form in enumerate(every_form(CANARY)))
    command = script(
        place,
        f"import os\ndata = {text.encode()!r}\n"
        "for stream in (1, 2):\n"
        "    for place in range(0, len(data), 3):\n"
        "        os.write(stream, data[place:place + 3])\n"
        # So much that all of it is kept as evidence, too.
        "os.write(1, b'x\\n' * 2000 + data)\n",
    )
    shown: list[SafeText] = []
    result = await RUN.execute(await plan(RUN, place, command=command), place, watch(shown.append))
    assert result.output is not None
    spool = (await place.fetch(result.output)).decode()
    assert spool.count("[secret:CANARY]") == 18
    for seen in (result.text, result.summary, spool, *shown):
        assert not [form for form in every_form(CANARY) if form in seen]
    (place.folder / "script.py").unlink()
    assert not [form for form in every_form(CANARY) for data in contents(tmp_path) if form.encode() in data]


async def test_the_middle_of_much_output_is_left_out_and_all_of_it_kept(place: Workplace) -> None:
    result = await done(RUN, place, command="seq 1 2000")
    assert "left out" in result.text
    assert result.text.endswith("\n2000")
    assert result.output is not None
    assert f"read_artifact {result.output[7:19]}" in result.text
    assert (await place.fetch(result.output)).decode() == "".join(f"{number}\n" for number in range(1, 2001))


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("seq 1 50", False),
        (r"printf 'a\r\nb'", False),
        (r"printf '\033[1mbold\033[0m\n'", False),
        ("head -c 5000 /dev/zero | tr '\\0' x", True),
        (r"printf '10%%\r20%%\rdone\n'", True),
        (r"printf '10%%\rdone\na line that is longer than what was written over\n'", True),
    ],
)
async def test_output_is_kept_when_the_text_lacks_some_of_it(place: Workplace, command: str, kept: bool) -> None:
    assert ((await done(RUN, place, command=command)).output is not None) is kept


async def test_endless_output_is_bounded_and_its_command_is_ended(place: Workplace) -> None:
    result = await done(RUN, place, command="yes a line of some length | head -c 11000000")
    assert result.output is not None
    assert len(result.text) < 100_000
    assert len(await place.fetch(result.output)) == 10_000_000
    assert "only the beginning is kept" in result.text
    result = await done(RUN, place, command="yes", timeout=1)
    assert (result.outcome, result.summary[:9]) == ("failed", "timed out")


@pytest.mark.slow
async def test_100_mb_of_output(place: Workplace) -> None:
    result = await done(RUN, place, command="head -c 75000000 /dev/urandom | base64")
    assert result.exit_code == 0
    assert len(result.text) < 100_000


async def test_who_watches_gets_the_last_lines_now_and_then(place: Workplace) -> None:
    shown: list[tuple[float, SafeText]] = []
    this = await plan(RUN, place, command="for i in $(seq 1 200); do echo $i; sleep 0.002; done")
    began = time.monotonic()
    await RUN.execute(this, place, watch(lambda text: shown.append((time.monotonic(), text))))
    assert shown[-1][1] == "\n".join(str(number) for number in range(186, 201))
    assert all(len(text.splitlines()) <= 15 for _, text in shown)
    assert 2 <= len(shown) <= (shown[-1][0] - began) * 10 + 2


async def test_what_it_left_running_is_ended_and_told(place: Workplace) -> None:
    result = await done(RUN, place, command="sleep 100 & setsid sleep 100 & echo pids $! $(jobs -p)")
    assert result.outcome == "ok"
    assert "2 processes it left running were ended." in result.text.splitlines()[1]
    assert alive([int(pid) for pid in result.text.split("pids ")[1].split()]) == []


async def test_a_stopped_command_is_gone_at_once(place: Workplace) -> None:
    result, seconds = await stopped(place, "echo pids $$; sleep 100 & setsid sleep 100 & echo pids $!; wait", at="pids")
    assert (result.outcome, result.exit_code) == ("cancelled", None)
    assert result.text.startswith("stopped by the person after")
    assert alive([int(line.split()[1]) for line in result.text.splitlines() if line.startswith("pids ")]) == []
    # The bar is 100 ms on a quiet machine; a busy one may take some times that, and never the grace of a second.
    assert seconds < 0.8


async def test_a_command_that_was_stopped_before_it_began_does_nothing(place: Workplace) -> None:
    stop = asyncio.Event()
    stop.set()
    result = await RUN.execute(await plan(RUN, place, command="touch ran"), place, watch(stop=stop))
    assert (result.outcome, result.summary) == ("cancelled", "stopped by the person before it began")
    assert list(place.folder.iterdir()) == []


async def test_one_that_ignores_signals_is_ended_all_the_same(place: Workplace) -> None:
    command = "trap '' TERM INT; (while :; do sleep 1; done) & echo pids $$ $!; while :; do sleep 1; done"
    result, seconds = await stopped(place, command, at="pids")
    assert result.outcome == "cancelled"
    pids = [int(pid) for pid in result.text.split("pids ")[1].split()[:2]]
    assert alive(pids) == []
    assert seconds < 2.5


async def test_descriptors_are_closed_again(place: Workplace) -> None:
    await done(RUN, place, command="true")
    before = own_descriptors()
    await done(RUN, place, command="true")
    assert own_descriptors() == before


def test_its_schema_is_short() -> None:
    assert RUN.kind == "run"
    assert len(json.dumps(RUN.schema.parameters)) + len(RUN.schema.description) < 420
