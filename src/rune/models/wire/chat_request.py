"""The body of `/v1/chat/completions`, the same for every server that speaks it."""

from collections.abc import Mapping

import msgspec

from rune.models.transport import ChatRequest


def request_body(request: ChatRequest, fields: Mapping[str, object]) -> bytes:
    """Return a streaming request's body: `fields`, then what `request` holds; messages, tools and format stand in it
    byte for byte.
    """
    begin: dict[str, object] = {"model": request.model, "stream": True, **fields}
    if request.max_tokens is not None:
        begin["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        begin["temperature"] = request.temperature
    body = msgspec.json.encode(begin)[:-1] + b',"messages":' + request.messages
    if offers_tools(request):
        body += b',"tools":' + request.tools
    if request.format is not None:
        body += b',"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":'
        body += request.format + b"}}"
    return body + b"}"


def offers_tools(request: ChatRequest) -> bool:
    """Whether a request offers any tool."""
    return request.tools.strip() not in {b"", b"[]"}
