"""What the project's own files (AGENTS.md) say about work in it, where the folder is trusted."""

import re
from collections.abc import Sequence

from rune.context.blocks import AssemblyRequest, ContributionBlock, ProjectFile
from rune.context.prompt_files import prompt

_BACKTICKS = re.compile("`{3,}")


class ProjectContributor:
    """Gives each instructing file as a block of its own, so that one too large leaves the others in."""

    name = "project"

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        """Return the files that say something, outermost first."""
        return [self._block(file) for file in request.project if file.text.strip()]

    def _block(self, file: ProjectFile) -> ContributionBlock:
        path = _one_line(file.path)
        # A fence longer than any inside: no text can end it and speak with another voice.
        fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(file.text))])
        return ContributionBlock(
            name=self.name,
            priority=85,
            content=f"{prompt('project').format(path=path)}\n{fence}\n{file.text.strip()}\n{fence}",
            source=path,
            evictable=True,
            placement="prefix",
            provenance="file",
        )


def _one_line(path: str) -> str:
    """Return the path with everything that is not plainly visible replaced; a file's name is not ours."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in path)
