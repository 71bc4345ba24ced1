"""A clone, an empty home, an empty cache: one command is enough. Installs for real, so it runs by hand or at night."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, project_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "a fresh clone"
    for path in project_files():
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        copy.chmod(path.stat().st_mode)
    return root


def begin(checkout: Path) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RUNE_", "XDG_"))}
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    return subprocess.Popen(
        [checkout / "scripts" / "rune", "--version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**kept, "HOME": str(home), "PIP_CACHE_DIR": str(checkout.parent / "cache")},
    )


def test_two_first_starts_at_once_both_end_well_and_install_once(checkout: Path) -> None:
    ends = [start.communicate(timeout=600) for start in (begin(checkout), begin(checkout))]
    assert [out.split()[0] for out, _ in ends] == ["rune", "rune"]
    assert "".join(err for _, err in ends).count("rune: installing") == 1


def test_an_install_that_was_killed_is_made_anew_by_the_next_start(checkout: Path) -> None:
    killed = begin(checkout)
    assert killed.stderr
    for line in killed.stderr:
        if "installing" in line:
            break
    os.killpg(killed.pid, 9)
    killed.communicate(timeout=60)
    out, err = begin(checkout).communicate(timeout=600)
    assert out.startswith("rune ")
    assert "the last install was cut off" in err
