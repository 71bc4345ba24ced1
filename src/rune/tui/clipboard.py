"""Gives text to the person's clipboard, from wherever Rune runs: OSC 52, and through tmux."""

import os
import shutil
import subprocess
from collections.abc import Mapping

SECONDS = 2.0


def give_to_tmux(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Load `text` into tmux's buffer and from there into the outer terminal's clipboard; False outside of tmux.

    tmux takes OSC 52 from programs only where it is set to (`set-clipboard on`), and passes it on to the terminal
    by itself when a buffer is loaded with `-w` (tmux 3.2 and later). Blocks for at most two seconds.
    """
    program = shutil.which("tmux", path=environ.get("PATH"))
    if not environ.get("TMUX") or program is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603  # the program found above, without a shell
            [program, "load-buffer", "-w", "-"],
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
