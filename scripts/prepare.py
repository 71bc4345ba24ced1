"""Make or mend `.venv` in this checkout, so that it holds Rune with the extras that are named.

Run by `scripts/environment.sh` with a bare Python 3.11 or newer: the standard library only. Speaks on stderr, one line
a step; what pip says goes to `.venv/install.log`. Safe to run twice at once: the second waits for the first and finds
its work done.

Files it keeps in `.venv`:

    stamps/<extra>            what this extra was last installed from; equal to `--stamp` when nothing is left to do
    stamps/without-embedded   there while the extra `embedded` cannot be installed on this machine
    installing                there while pip runs; found at the start it means that an install was cut off
    install.log               all that the last install printed
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMPS = VENV / "stamps"
INSTALLING = VENV / "installing"
WITHOUT_EMBEDDED = STAMPS / "without-embedded"
LOG = VENV / "install.log"

EXTRAS = ("dev", "embedded")

# Settings of a person's own that make no sense inside a virtual environment.
_NOT_FOR_VENV = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")


def say(line: str) -> None:
    """Print one line for the person."""
    print(f"rune: {line}", file=sys.stderr, flush=True)


def is_done(extras: Sequence[str], stamp: str) -> bool:
    """Say whether every extra was installed from `stamp`, and the last install came to its end."""
    if INSTALLING.exists() or not os.access(PYTHON, os.X_OK):
        return False
    return all(_read(STAMPS / extra) == stamp for extra in extras)


def make_venv() -> bool:
    """Make `.venv`, unless a whole one is there. Returns whether it held a complete install before."""
    flaw = _flaw()
    if VENV.exists() and not flaw:
        return any(STAMPS.glob("*"))
    say(f"making .venv with Python {sys.version.split()[0]}{flaw and f': {flaw}'}")
    if VENV.exists():
        shutil.rmtree(VENV)
    # The real path: a link such as /usr/bin/python3 would change its version under the feet of the environment,
    # while a link to a version that was removed dangles, and the next start makes a new environment.
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    subprocess.run([base, "-I", "-m", "venv", VENV], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return False


def install(extras: Sequence[str], stamp: str) -> bool:
    """Install this checkout with `extras`; without `embedded` where that cannot be had. Returns whether it worked."""
    STAMPS.mkdir(exist_ok=True)
    LOG.unlink(missing_ok=True)
    INSTALLING.touch()
    say(f"installing Rune into .venv ({', '.join(extras)}); a minute, once")
    worked = _install_editable(extras)
    WITHOUT_EMBEDDED.unlink(missing_ok=True)
    if not worked and "embedded" in extras:
        worked = _install_editable([extra for extra in extras if extra != "embedded"])
        if worked:
            WITHOUT_EMBEDDED.touch()
            say(f"the embedded model's library cannot be installed here: {LOG} says why. The rest works, with Ollama")
            say("to try again: remove .venv and start again")
    if worked:
        for extra in extras:
            (STAMPS / extra).write_text(stamp + "\n", encoding="utf-8")
    # pip takes back what it could not finish; only an install that was killed leaves this file behind.
    INSTALLING.unlink()
    return worked


def _flaw() -> str:
    """Say why the `.venv` that is there cannot be built upon; empty when it can, or when there is none."""
    if not VENV.exists():
        return ""
    if INSTALLING.exists():
        return "the last install was cut off"
    if any(_read(path).split(" ", 2)[2:] != [str(ROOT)] for path in STAMPS.glob("*") if path.name in EXTRAS):
        return "the checkout was moved, and its commands hold the old place"
    if _pip("--version") != 0:
        return "the one that is there does not work"
    return ""


def _install_editable(extras: Sequence[str]) -> bool:
    wanted = f".[{','.join(extras)}]" if extras else "."
    return _pip("install", "--quiet", "--no-input", "--editable", wanted) == 0


def _pip(*arguments: str) -> int:
    """Run the venv's pip with its output in the log. Returns its exit code; 127 when there is no pip to run."""
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_VENV}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    environment.setdefault("PIP_RETRIES", "2")
    if not PYTHON.exists():
        return 127
    with LOG.open("ab") as log:
        command = [PYTHON, "-I", "-m", "pip", *arguments]
        return subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            close_fds=False,  # it inherits the lock: when this process is killed, the lock stays until pip ends
        ).returncode


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        return ""


def _what_pip_said() -> str:
    lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines() if LOG.exists() else []
    errors = [line.strip() for line in lines if line.strip().startswith("ERROR:")]
    return "".join(f"\n  {line}" for line in (errors or lines)[-3:])


def prepare(extras: Sequence[str], stamp: str) -> int:
    """Bring `.venv` up to `stamp`. Returns the exit code."""
    if is_done(extras, stamp):
        return 0
    had_rune = make_venv()
    if install(extras, stamp):
        return 0
    say(f"the install failed (all of it: {LOG}). Is there a network?{_what_pip_said()}")
    if had_rune and "dev" not in extras:
        say("going on with what was installed before")
        return 0
    return 1


def main() -> int:
    """Take the lock of this checkout, then prepare."""
    parser = argparse.ArgumentParser(description="Make or mend .venv in this checkout.")
    parser.add_argument("--stamp", required=True, help="what the install depends on: checksum, length, checkout")
    parser.add_argument("extras", nargs="+", choices=EXTRAS, help="extras of pyproject.toml")
    options = parser.parse_args()
    try:
        # Beside .venv, not in it: .venv itself may be made anew. The kernel drops the lock with the process.
        with (ROOT / ".venv.lock").open("a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another start that is setting up .venv")
                fcntl.flock(lock, fcntl.LOCK_EX)
            os.set_inheritable(lock.fileno(), True)
            return prepare(options.extras, options.stamp)
    except KeyboardInterrupt:
        say("interrupted; the next start begins again")
        return 130
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"cannot set up .venv in {ROOT}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
