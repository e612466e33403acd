"""The chat-completions wire, free of any vendor package.

request --encode(dialect)--> body --Transport--> bytes --sse--> mapping --decode(dialect)--> CompletionDelta
"""

from ._credentials import find_api_key
from ._dialect import Dialect
from ._errors import error_from_exception, error_from_object, error_from_response, redact
from ._provider import OpenAICompatibleProvider
from ._sdk import CONNECT_TIMEOUT, READ_TIMEOUT, SdkProvider
from ._stream import ChatStream
from ._transport import ObjectTransport, Reply, SdkTransport, SyncSdkTransport, Transport, body_of, transport_for

__all__ = [
    "CONNECT_TIMEOUT",
    "READ_TIMEOUT",
    "ChatStream",
    "Dialect",
    "ObjectTransport",
    "OpenAICompatibleProvider",
    "Reply",
    "SdkProvider",
    "SdkTransport",
    "SyncSdkTransport",
    "Transport",
    "body_of",
    "error_from_exception",
    "error_from_object",
    "error_from_response",
    "find_api_key",
    "redact",
    "transport_for",
]
