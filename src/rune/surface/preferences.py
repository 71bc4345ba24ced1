"""What a person chose in the app and does not write into config.yaml: `app.json`."""

from pathlib import Path
from typing import Any, Final

import msgspec

from rune.errors import StorageError
from rune.host.files import private_folder, replace_file
from rune.host.small_files import locked, read_bounded
from rune.store.failures import unavailable
from rune.surface.drafts import Report, to_log
from rune.text.storable import storable

_LIMIT: Final = 1024 * 1024
_HINT: Final = "Mend or remove that file."


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
        try:
            name = self._read().get("theme", "")
        except StorageError as error:
            self._report(error)
            return ""
        return name if isinstance(name, str) else ""

    @theme.setter
    def theme(self, name: str) -> None:
        try:
            private_folder(self._file.parent)
            with locked(self._lock):
                kept = self._read()
                if kept.get("theme", "") != name:
                    kept["theme"] = storable(name)
                    replace_file(self._file, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
        except OSError as error:
            raise unavailable(error, f"the theme cannot be kept ({self._file})") from error

    def _read(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(read_bounded(self._file, _LIMIT), type=dict[str, Any])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError as error:
            raise StorageError(f"{self._file} cannot be used: {error}", hint=_HINT) from error
        except OSError as error:
            raise unavailable(error, f"{self._file} cannot be read") from error
