"""The one door through which the operating system's errors become ours in `store`."""

import errno

from rune.errors import StorageError, StorageUnavailableError

# After one of these nothing is known to be broken: the next attempt may go well.
PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM})

# What stands there can never be read as the file that it should be: damage, and not a state that passes.
_UNREADABLE = {
    errno.EISDIR: "a folder stands in its place",
    errno.ELOOP: "a symbolic link stands in its place",
    errno.EINVAL: "what stands in its place is not a file",
    errno.ENXIO: "what stands in its place is not a file",
    errno.EIO: "the disk cannot read it (Input/output error)",
    errno.ENODATA: "the disk cannot read it (a bad sector)",
    errno.EBADMSG: "the file system finds it damaged",
    errno.EUCLEAN: "the file system finds it damaged",
}

_HINTS = {
    errno.ENOSPC: "The disk is full: free some space and send it again. What was acknowledged is safe.",
    errno.EDQUOT: "Your disk quota is used up: free some space and send it again.",
    errno.EFBIG: "The file may not grow further: raise the limit on file sizes (ulimit -f).",
    errno.EROFS: "The disk is mounted read-only: remount it, or set RUNE_HOME to a folder that can be written.",
    errno.EACCES: "Check who owns that folder, or set RUNE_HOME to one that can be written.",
    errno.EPERM: "Check who owns that folder, or set RUNE_HOME to one that can be written.",
    errno.EIO: "The disk reports an error: check it, then start Rune again.",
    errno.ELOOP: "A symbolic link stands where Rune keeps its own files: replace it by the file or folder itself.",
    errno.ENOLCK: "This file system has no locks: set RUNE_HOME to a folder on a local disk.",
    errno.EOPNOTSUPP: "This file system has no locks: set RUNE_HOME to a folder on a local disk.",
}


def why_unreadable(error: BaseException | None) -> str | None:
    """Return what makes a file, or a part of it, unreadable for good; None for every other error."""
    return _UNREADABLE.get(error.errno or 0) if isinstance(error, OSError) else None


def unavailable(error: OSError, what: str) -> StorageUnavailableError:
    """Return the typed form of an error that came while doing `what`, with a hint."""
    reason = error.strerror or str(error)
    code = error.errno or 0
    return StorageUnavailableError(f"{what}: {reason}", hint=_HINTS.get(code, "Nothing acknowledged is lost."))


def ending(error: OSError, what: str) -> StorageUnavailableError:
    """Return the typed form of an error after which this process writes nothing any more; the hint says so."""
    failure = unavailable(error, what)
    if "tart Rune again" not in failure.hint:
        failure.hint = "What is on the disk is not certain now. Start Rune again: it reads back what is there."
    return failure


def refused(why: StorageError) -> StorageUnavailableError:
    """Return what whoever wants to write is told in a run that only reads, for this reason."""
    return StorageUnavailableError(f"nothing can be written, only read: {why.message}", hint=why.hint)
