"""What a person chose in the app and does not write into config.yaml: `app.json`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from rune.errors import StorageError
from rune.host.files import private_folder, replace_file
from rune.host.small_files import locked, read_bounded
from rune.store.failures import unavailable
from rune.surface.drafts import Report, to_log
from rune.text.storable import storable

_LIMIT: Final = 1024 * 1024
_HINT: Final = "Mend or remove that file."
_DECLINED_KEPT: Final = 1_000  # folders to which the person said no: the newest of them


class Preferences:
    """Reads and changes `<state_dir>/app.json`; several processes may do so at once. All of it blocks shortly.

    What other versions keep there stays. `report` is told why nothing could be read.
    """

    def __init__(self, state_dir: Path, *, report: Report = to_log) -> None:
        self._file = state_dir / "app.json"
        self._lock = state_dir / "app.lock"
        self._report = report

    @property
    def theme(self) -> str:
        """The name of the theme; "" when none was chosen, or it cannot be known, which is reported.

        Setting it raises StorageError.
        """
        name = self._reported().get("theme", "")
        return name if isinstance(name, str) else ""

    @theme.setter
    def theme(self, name: str) -> None:
        def change(kept: dict[str, Any]) -> None:
            kept["theme"] = storable(name)

        self._change(change, "the theme")

    def declined(self, root: str) -> str:
        """Return the digest of the files that the person did not want to instruct Rune in the project of this real
        path; "" when there is none, or it cannot be known, which is reported.
        """
        digest = _declined(self._reported()).get(storable(root), "")
        return digest if isinstance(digest, str) else ""

    def decline(self, root: str, digest: str) -> None:
        """Keep that the person said no to the files of this digest. Raises StorageError."""

        def change(kept: dict[str, Any]) -> None:
            declined = _declined(kept)
            declined.pop(storable(root), None)
            newest = [*declined.items(), (storable(root), storable(digest))][-_DECLINED_KEPT:]
            kept["declined"] = dict(newest)

        self._change(change, "your answer")

    def _change(self, change: Callable[[dict[str, Any]], None], what: str) -> None:
        try:
            private_folder(self._file.parent)
            with locked(self._lock):
                before, kept = self._read(), self._read()
                change(kept)
                if kept != before:
                    replace_file(self._file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
        except OSError as error:
            raise unavailable(error, f"{what} cannot be kept ({self._file})") from error

    def _reported(self) -> dict[str, Any]:
        try:
            return self._read()
        except StorageError as error:
            self._report(error)
            return {}

    def _read(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(read_bounded(self._file, _LIMIT), type=dict[str, Any])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise StorageError(f"{self._file} cannot be used: {error}", hint=_HINT) from error
        except OSError as error:
            raise unavailable(error, f"{self._file} cannot be read") from error


def _declined(kept: dict[str, Any]) -> dict[str, Any]:
    """Return digests by the real paths of their folders; what another version may have put there counts as none."""
    declined = kept.get("declined")
    return dict(cast("dict[str, Any]", declined)) if isinstance(declined, dict) else {}
