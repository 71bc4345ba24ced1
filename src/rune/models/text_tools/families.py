"""The forms in which families of models write their calls as text (models.md, Repair): one grammar for all.

Calls stand one after another; between them only what their templates put there: markers, fences, special tokens,
white space, one thought at the beginning. Anything else, and the text is no call at all: what a model says about
a call, or quotes from a file, must not act.
"""

from typing import Final

from rune.models.text_tools import loose_json
from rune.models.text_tools.call_objects import call_object, listed
from rune.models.text_tools.cursor import Cursor, NotACallError, Reading
from rune.models.text_tools.draft import Draft, Written
from rune.models.text_tools.python_calls import parenthesis

_FILLERS: Final = (
    # ends and beginnings of messages that a template left in the text
    *("<|im_end|>", "<|im_start|>assistant", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    *("<|begin_of_text|>", "<|start_header_id|>assistant<|end_header_id|>", "<s>", "</s>", "<bos>", "<eos>"),
    *("<start_of_turn>model", "<end_of_turn>", "<|end|>", "<|call|>", "<|return|>", "<|start|>assistant"),
    "<|assistant|>",
    # what some put round a call; a forgotten opener or closer changes nothing of what stands between
    *("<tool_call>", "</tool_call>", "<tool_calls>", "</tool_calls>", "</tools>", "<response>", "</response>"),
    *("<function_call>", "</function_call>", "<functioncall>", "</functioncall>", "</function>"),
    *("<|tool_call|>", "<|/tool_call|>", "</think>"),
)


def _spellings(token: str) -> tuple[str, ...]:
    """DeepSeek's tokens have characters of their own; servers and models also write them in ASCII."""
    own = token.replace("|", "\N{FULLWIDTH VERTICAL LINE}")
    return (token, own, own.replace("_", "▁"), token.replace("_", "▁"))


_DEEPSEEK_ROUND: Final = (
    *_spellings("<|begin_of_sentence|>"),
    *_spellings("<|end_of_sentence|>"),
    *_spellings("<|Assistant|>"),
    *_spellings("<|tool_calls_begin|>"),
    *_spellings("<|tool_calls_end|>"),
    *_spellings("<|tool_call_end|>"),
)
_DEEPSEEK_CALL: Final = _spellings("<|tool_call_begin|>")
_DEEPSEEK_SEPARATOR: Final = _spellings("<|tool_sep|>")

_PYTHON_FENCES: Final = frozenset({"tool_code", "python", "py"})
_FENCES: Final = ("json", "tool_calls", "tool_call", "function_call", "xml", *_PYTHON_FENCES)
_CHANNELS: Final = ("commentary", "analysis", "assistantcommentary", "assistantanalysis")
_CLOSERS_OF_A_CALL: Final = ("</function>", "</tool_call>")


def whole(cursor: Cursor, draft: Draft) -> Reading[None]:
    """Read all of a text as calls and nothing else. Raises NotACallError as soon as it cannot be that."""
    yield from _between(cursor, draft)
    yield from _thought(cursor)
    while True:
        yield from _between(cursor, draft)
        if (yield from cursor.at_end()):
            break
        yield from _item(cursor, draft)
    if not draft.calls:
        raise NotACallError


def _between(cursor: Cursor, draft: Draft) -> Reading[None]:
    openers = ("<tools>", "<|python_tag|>", "[TOOL_CALLS]")
    while True:
        yield from cursor.blanks()
        found = yield from cursor.choose(*openers, *_FILLERS, *_DEEPSEEK_ROUND, "```")
        if not found:
            return
        if found == "```":
            yield from _fence(cursor, draft)
            found = draft.marker  # what stands in a fence is still what the marker before it announced
        draft.mark(found)


def _fence(cursor: Cursor, draft: Draft) -> Reading[None]:
    if draft.fence is not None:
        draft.fence = None
        return
    draft.fence = yield from cursor.choose(*_FENCES)
    following = yield from cursor.peek()
    if following.isalnum() or following == "`":
        raise NotACallError  # another language, or a longer fence


def _thought(cursor: Cursor) -> Reading[None]:
    """Read a complete thought at the beginning; one that does not end is no call."""
    if (yield from cursor.choose("<think>")) and not (yield from cursor.through("</think>")):
        raise NotACallError


def _item(cursor: Cursor, draft: Draft) -> Reading[None]:
    character = yield from cursor.peek()
    if character == "{":
        yield from call_object(cursor, draft)
        yield from _comma(cursor)
    elif character == "[":
        cursor.position += 1
        yield from cursor.blanks()
        objects = (yield from cursor.peek()) == "{"
        yield from listed(cursor, lambda: (call_object if objects else _python_call)(cursor, draft))
    elif character == "<":
        yield from _tagged(cursor, draft)
    else:
        yield from _named(cursor, draft)


def _comma(cursor: Cursor) -> Reading[None]:
    """Between two objects a comma or semicolon may stand; after the last one it may not."""
    yield from cursor.blanks()
    if (yield from cursor.choose(",", ";")):
        yield from cursor.blanks()
        if (yield from cursor.peek()) != "{":
            raise NotACallError


def _tagged(cursor: Cursor, draft: Draft) -> Reading[None]:
    found = yield from cursor.expect("<function=", "<|channel|>", *_DEEPSEEK_CALL)
    if found == "<function=":
        yield from _function(cursor, draft)
    elif found == "<|channel|>":
        yield from _channel(cursor, draft)
    else:
        yield from _deepseek(cursor, draft)


def _named(cursor: Cursor, draft: Draft) -> Reading[None]:
    """Read what begins with a word: gpt-oss without its first token, Python in a fence or after a tag, Mistral."""
    if (yield from cursor.choose(*_CHANNELS)):
        yield from _recipient(cursor, draft)
        return
    if (yield from cursor.choose("to=")):
        yield from _addressed(cursor, draft)
        return
    if draft.fence in _PYTHON_FENCES or (draft.fence is None and draft.marker == "<|python_tag|>"):
        yield from _python_call(cursor, draft)
        return
    name = draft.begin((yield from _identifier(cursor)))
    if (yield from cursor.choose("[CALL_ID]")):
        yield from cursor.name()
    marked = yield from cursor.choose("[ARGS]")
    if not marked and draft.marker != "[TOOL_CALLS]":
        raise NotACallError
    yield from _json_arguments(cursor, draft, name)


def _identifier(cursor: Cursor) -> Reading[str]:
    """Read a name that stands without quotes: an answer may well begin with a number."""
    first = yield from cursor.peek()
    if first and not (first.isalpha() or first == "_"):
        raise NotACallError
    return (yield from cursor.name())


def _json_arguments(cursor: Cursor, draft: Draft, name: str) -> Reading[None]:
    yield from cursor.blanks()
    if (yield from cursor.peek()) != "{":
        cursor.fail()
    mark = cursor.position
    yield from loose_json.value(cursor)
    draft.add(Written(name=name, form="json", arguments=cursor.since(mark)))


def _python_call(cursor: Cursor, draft: Draft) -> Reading[None]:
    name = yield from _identifier(cursor)
    printed = draft.fence == "tool_code" and name == "print"
    if printed:
        yield from cursor.expect("(")
        name = yield from cursor.name()
    name = draft.begin(name.removesuffix(".call") if draft.marker == "<|python_tag|>" else name)
    mark = cursor.position
    yield from parenthesis(cursor)
    draft.add(Written(name=name, form="python", arguments=cursor.since(mark)))
    if printed:
        yield from cursor.expect(")")


def _function(cursor: Cursor, draft: Draft) -> Reading[None]:
    """Read `name>{json}` (Llama) or `name><parameter=path>...</parameter></function>` (Qwen's coders)."""
    name = draft.begin((yield from cursor.name()))
    yield from cursor.expect(">")
    yield from cursor.blanks()
    if (yield from cursor.peek()) == "{":
        yield from _json_arguments(cursor, draft, name)
        return
    parameters: list[tuple[str, str]] = []
    while not (yield from cursor.choose(*_CLOSERS_OF_A_CALL)):
        yield from cursor.expect("<parameter=")
        key = yield from cursor.name()
        yield from cursor.expect(">")
        parameters.append((key, (yield from _parameter(cursor))))
        if (yield from cursor.at_end()):
            break  # only the closing tags are missing
    draft.add(Written(name=name, form="xml", parameters=tuple(parameters)))


def _parameter(cursor: Cursor) -> Reading[str]:
    """Read a parameter's text: up to the closing tag after which the call goes on or ends."""
    mark = cursor.position
    while True:
        if not (yield from cursor.through("</parameter>")):
            cursor.fail()
        end = cursor.position - len("</parameter>")
        yield from cursor.blanks()
        if (yield from cursor.at_end()) or (yield from cursor.stands("<parameter=", *_CLOSERS_OF_A_CALL)):
            return cursor.since(mark, end).removeprefix("\n").removesuffix("\n")


def _channel(cursor: Cursor, draft: Draft) -> Reading[None]:
    """Read a call in a channel of gpt-oss, or the thought before it; what it says to the person is no call."""
    channel = yield from cursor.expect("commentary", "analysis")
    yield from cursor.blanks()
    if channel == "analysis" and not draft.calls and (yield from cursor.choose("<|message|>")):
        if not (yield from cursor.through("<|end|>")):
            raise NotACallError
        return
    yield from _recipient(cursor, draft)


def _recipient(cursor: Cursor, draft: Draft) -> Reading[None]:
    yield from cursor.blanks()
    yield from cursor.expect("to=")
    yield from _addressed(cursor, draft)


def _addressed(cursor: Cursor, draft: Draft) -> Reading[None]:
    name = draft.begin((yield from cursor.name()))
    yield from cursor.blanks()
    if (yield from cursor.choose("<|channel|>")):
        yield from cursor.expect("commentary", "analysis")
        yield from cursor.blanks()
    yield from cursor.choose("<|constrain|>")
    yield from cursor.choose("json", "code")
    yield from cursor.blanks()
    yield from cursor.choose("<|message|>")
    yield from _json_arguments(cursor, draft, name)


def _deepseek(cursor: Cursor, draft: Draft) -> Reading[None]:
    """Read `function<sep>name`, a fence with the arguments (V3, R1), or `name<sep>{json}` (V3.1)."""
    yield from cursor.blanks()
    first = yield from cursor.name()
    yield from cursor.expect(*_DEEPSEEK_SEPARATOR)
    yield from cursor.blanks()
    if (yield from cursor.peek()) == "{":
        yield from _json_arguments(cursor, draft, draft.begin(first))
        return
    if first != "function":
        raise NotACallError
    name = draft.begin((yield from cursor.name()))
    yield from cursor.blanks()
    if (yield from cursor.choose("```")):
        yield from _fence(cursor, draft)
    yield from _json_arguments(cursor, draft, name)
