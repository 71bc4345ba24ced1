"""Small projects of several languages, with a virtual environment that finds what tests run with."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Put files into a folder, with the folders above them."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def give_venv(folder: Path, *, pytest: bool = True, ruff: bool = False) -> None:
    """Give a project a virtual environment of its own, in which these are installed."""
    venv = folder / ".venv"
    libraries = venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    libraries.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (venv / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    if pytest:
        (libraries / "pytest").mkdir()
        (libraries / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    if ruff:
        program = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert program is not None, "ruff belongs to what tests are run with"
        (venv / "bin" / "ruff").symlink_to(program)
