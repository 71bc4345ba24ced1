"""git, so that no program but git runs: what a repository's configuration starts is switched off or refused."""
