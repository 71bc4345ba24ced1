"""The tools of Rune, in the order in which models read them."""

from typing import Final

from rune.store.conversations import ConversationStateRepository
from rune.store.intents import IntentRepository
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.format_code import FormatCode
from rune.tools.executors.git_commit import GitCommit
from rune.tools.executors.git_diff import GitDiff
from rune.tools.executors.git_log import GitLog
from rune.tools.executors.git_show import GitShow
from rune.tools.executors.git_status import GitStatus
from rune.tools.executors.glob_files import GlobFiles
from rune.tools.executors.grep_files import GrepFiles
from rune.tools.executors.history_search import HistorySearch
from rune.tools.executors.lint import Lint
from rune.tools.executors.list_directory import ListDirectory
from rune.tools.executors.read_artifact import ReadArtifact
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.run_command import RunCommand
from rune.tools.executors.run_tests import RunTests
from rune.tools.executors.todo import Todo
from rune.tools.executors.write_file import WriteFile
from rune.tools.registry import Toolbox
from rune.turn.workplaces import find_artifact

CORE: Final = (
    "read_file",
    "list_directory",
    "grep_files",
    "edit_file",
    "write_file",
    "run_command",
    "run_tests",
    "read_artifact",
)
"""What a very small model, or one with a small window, is offered: enough to find, change and prove."""


def standard_toolbox(conversations: ConversationStateRepository, results: IntentRepository) -> Toolbox:
    """Return every tool that there is."""
    return Toolbox(
        (
            ReadFile(),
            ListDirectory(),
            GlobFiles(),
            GrepFiles(),
            EditFile(),
            WriteFile(),
            RunCommand(),
            RunTests(),
            Lint(),
            FormatCode(),
            GitStatus(),
            GitDiff(),
            GitLog(),
            GitShow(),
            GitCommit(),
            Todo(),
            ReadArtifact(find_artifact(results)),
            HistorySearch(conversations),
        ),
        core=CORE,
    )
