"""Every error this library raises on purpose, in one tree.

    AgentCoreError
    ├── ConfigError                      a setting, a name or a file is wrong; nothing was sent
    ├── AbortedError                     the caller stopped the run
    └── ProviderError                    a vendor, or the way to it, failed
        ├── AuthenticationError          401: the key is missing or wrong
        ├── PermissionDeniedError        403: the key may not do this
        ├── BadRequestError              400, 422 and other 4xx: the request as it stands will never work
        │   ├── ContextLengthError       the conversation is longer than the model's context
        │   └── ToolUseFailedError       the model's own tool call did not parse at the vendor
        ├── NotFoundError                404: model or address unknown
        ├── RequestTooLargeError         413: the body is larger than the service takes
        ├── RateLimitError               429: too many requests or tokens
        ├── ServerError                  5xx
        ├── ProviderTimeoutError         no answer, or no further bytes, in time
        ├── ProviderConnectionError      no connection, or it broke before the answer began
        ├── ProtocolError                the answer makes no sense as an answer
        └── StreamInterruptedError       the answer broke off after it had begun

Nothing else leaves a provider. An error never holds a credential, so it does not chain the SDK's own exception
(whose request carries the key); what that said stands in the message and in `body`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ._completion import Completion
    from ._messages import Message

__all__ = [
    "AbortedError",
    "AgentCoreError",
    "AuthenticationError",
    "BadRequestError",
    "ConfigError",
    "ContextLengthError",
    "NotFoundError",
    "PermissionDeniedError",
    "ProtocolError",
    "ProviderConnectionError",
    "ProviderError",
    "ProviderTimeoutError",
    "RateLimitError",
    "RequestTooLargeError",
    "ServerError",
    "StreamInterruptedError",
    "ToolUseFailedError",
]


class AgentCoreError(Exception):
    """Base of every error of this library.

    Attributes:
        messages: the conversation up to the error, where it ended a tool loop.
    """

    messages: list[Message] | None = None


class ConfigError(AgentCoreError):
    """A setting, a name or a file is wrong. The message names it and the fix; nothing was sent."""


class AbortedError(AgentCoreError):
    """The caller stopped the run. `str(error)` holds the reason given to `AbortSignal.abort`."""


class ProviderError(AgentCoreError):
    """A vendor, or the connection to it, failed.

    Attributes:
        message: what went wrong, in the vendor's words where it gave any.
        provider: name of the provider, such as `"groq"`.
        model: model name as requested.
        status: HTTP status, also one told inside a 200 stream.
        code: the vendor's own error code or type, as text.
        request_id: the vendor's id of the request, for its support.
        retryable: whether the same request may well work a little later.
        retry_after: seconds to wait before that, where the vendor said so.
        body: the error as the vendor sent it (parsed JSON, or text).
        partial: the `Completion` so far, where something had arrived before the failure.
    """

    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        body: Any = None,
        partial: Completion | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.body = body
        self.partial = partial

    def __str__(self) -> str:
        where = ":".join(filter(None, (self.provider, self.model)))
        facts = [f"status {self.status}" if self.status else "", f"code {self.code}" if self.code else ""]
        if self.retry_after is not None:
            facts.append(f"retry after {self.retry_after:g} s")
        if self.request_id:
            facts.append(f"request id {self.request_id}")
        told = ", ".join(filter(None, facts))
        return f"{where}: {self.message}"[0 if where else 2 :] + (f" ({told})" if told else "")


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired (401)."""


class PermissionDeniedError(ProviderError):
    """The key is known but may not do this (403)."""


class BadRequestError(ProviderError):
    """The vendor refused the request as it stands (400, 422 and other 4xx)."""


class ContextLengthError(BadRequestError):
    """The conversation, or the answer asked for, is longer than the model's context."""


class ToolUseFailedError(BadRequestError):
    """The model wrote a tool call that its vendor could not read. Asking again may well work.

    `failed_generation` is what the model wrote, as far as the vendor told.
    """

    default_retryable = True

    def __init__(self, message: str, *, failed_generation: str | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.failed_generation = failed_generation


class NotFoundError(ProviderError):
    """No such model, deployment or address (404)."""


class RequestTooLargeError(ProviderError):
    """The request's body is larger than the service takes (413)."""


class RateLimitError(ProviderError):
    """Too many requests or tokens (429). `retry_after` has the wait in seconds where the vendor told it."""

    default_retryable = True


class ServerError(ProviderError):
    """The vendor failed (5xx)."""

    default_retryable = True


class ProviderTimeoutError(ProviderError):
    """No connection, no answer or no further bytes came in time."""

    default_retryable = True


class ProviderConnectionError(ProviderError):
    """No connection could be made, or it broke before the answer began."""

    default_retryable = True


class ProtocolError(ProviderError):
    """The answer makes no sense as an answer: not JSON, no choices, a web page, an unknown kind of error object."""


class StreamInterruptedError(ProviderError):
    """The answer broke off after it had begun; `partial` holds what had arrived."""

    default_retryable = True
