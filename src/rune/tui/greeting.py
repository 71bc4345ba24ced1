"""What an empty conversation says: who would answer, and how one begins."""

from typing import TYPE_CHECKING

from rune.tui.hints import in_the_app
from rune.tui.transcript_state import Told, Transcript

if TYPE_CHECKING:
    from rune.tui.talk import Talk


def greeted(talk: "Talk") -> Transcript:
    """Return the transcript of a talk, and where nothing was said yet what a person may want to know then."""
    if talk.transcript.entries or talk.transcript.pace is not None:
        return talk.transcript
    return Transcript(settled=(_who(talk), _how(talk)))


def _who(talk: "Talk") -> Told:
    key = "greeting/who"
    if talk.no_model is not None:
        return Told(key=key, text=talk.no_model.message, hint=in_the_app(talk.no_model.hint), tier=1)
    if talk.model is None:
        return Told(key=key, text="looking for a model ...")
    if talk.model.stand_in:
        hint = "For a real one: install Ollama (https://ollama.com/download), then `ollama pull qwen3:4b`."
        return Told(key=key, text=f"No model server answers; a small stand-in talks: {talk.model.name}.", hint=hint)
    where = "another machine: what you write goes there" if talk.model.remote else "this machine or in your own network"
    return Told(key=key, text=f"{talk.model.name} answers, on {where}.")


def _how(talk: "Talk") -> Told:
    other = "f4 is a chat beside it" if talk.channel == "task" else "f3 is the task beside it"
    return Told(
        key="greeting/how",
        text=f"This is a new conversation, the {talk.channel}; {other}.",
        hint="/resume goes back to an earlier one. F1 shows keys and commands.",
    )
