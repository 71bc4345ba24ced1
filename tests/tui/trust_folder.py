"""A project that brings instructions, and what was trusted of it."""

from pathlib import Path

from rune.config.trust import TrustBook, TrustStatus


class Folder:
    """Has two instructing files to begin with; `book` is where trust is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path / "project"
        (self.path / ".rune").mkdir(parents=True)
        self.write("AGENTS.md", "# Rules\nsay [b]yes[/b]\n")
        self.write(".rune/config.yaml", "tests: pytest\n")
        self.book = TrustBook(path / "trust.yaml")

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_bytes(text.encode("utf-8", "surrogatepass"))

    def status(self) -> TrustStatus:
        return self.book.status(self.path)
