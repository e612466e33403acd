"""Bytes through the mistralai SDK, past its models.

Decides how a body leaves and how the answer's bytes come in; address, credentials, hooks and connections stay the
SDK's. Its own calls make eight classes each and throw them away (6 ms), send no field that they have no type for, and
raise on what they did not expect. But they send through any HTTP client of a documented form (its README, "Custom HTTP
Client"): for one call, `_Exchange` is that client.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from typing import Any

from pydantic_core import to_json

from agent_core.chatwire import CONNECT_TIMEOUT, READ_TIMEOUT, Reply, body_of, error_from_exception, error_from_response
from agent_core.errors import ConfigError, ProviderError

__all__ = ["MistralTransport"]

_EVENTS = "text/event-stream"
_REMOVAL = "x-model-deprecation-timestamp"
_REQUEST: dict[str, Any] = {
    "method": "POST", "path": "/v1/chat/completions", "base_url": None, "url_variables": None, "request": None,
    "request_body_required": False, "request_has_path_params": False, "request_has_query_params": False,
    "user_agent_header": "user-agent", "accept_header_value": "*/*",
}  # fmt: skip
_CONTEXT: dict[str, Any] = {"oauth2_scopes": None, "tags": ["chat"], "extensions": None}

_log = logging.getLogger(__name__)


class _Exchange:
    """One request and its answer: the HTTP client that the SDK sends through, and the reply that chatwire reads.

    Attributes:
        chat: the SDK's `chat`, sending through this.
        response: the HTTP library's, once its headers have come; `status` and `headers` are as they were sent.
        secret: the key that was sent, which is kept out of errors.
    """

    content_type = ""
    request_id: str | None = None
    response: Any = None
    status = 0
    headers: Mapping[str, str] = {}
    secret: str | None = None
    _broken: Exception | None = None

    def __init__(self, client: Any, body: dict[str, Any], provider: str, headers: Mapping[str, str], wait: float):
        config = copy(client.sdk_configuration)
        self._client, config.async_client = config.async_client, self
        self.chat = type(client.chat)(config)
        self.body = body
        self.provider = provider
        self.disguised = False
        self._added = {"accept": _EVENTS if body.get("stream") else "application/json", **headers}
        self._timeout = (min(CONNECT_TIMEOUT, wait), wait, wait, wait)  # connect, read, write, pool

    # To the SDK

    def build_request(self, method: str, url: Any, **options: Any) -> Any:
        options["headers"] = {**options["headers"], "content-type": "application/json"}
        return self._client.build_request(
            method, url, **{**options, "content": to_json(self.body), "timeout": self._timeout}
        )

    async def send(self, request: Any, **options: Any) -> Any:
        request.headers.update(self._added)  # not before: a hook of the SDK breaks on a user agent without a space
        self.secret = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.response = response = await self._client.send(request, **{**options, "stream": True})
        self.status, self.headers = response.status_code, dict(response.headers)
        self.content_type = self.headers.get("content-type", "")
        self.request_id = self.headers.get("mistral-correlation-id") or self.headers.get("x-request-id")
        if self.status >= 400 or not self.body.get("stream"):  # the SDK's tracing looks into these
            try:
                await response.aread()
            except Exception as exception:
                self._broken = exception
        if removal := response.headers.pop(_REMOVAL, None):
            # A hook of the SDK tells it with the name in the body, and raises where that has not come yet.
            _log.warning("Mistral will remove the model %s on %s", self.body["model"], removal)
        if self.disguised:  # the only answer that the SDK's stream call hands over unread
            response.status_code, response.headers["content-type"] = 200, _EVENTS
        return response

    # To chatwire

    async def read(self) -> bytes:
        failure: ProviderError
        try:
            if self._broken is not None:
                raise self._broken
            content: bytes = await self.response.aread()
            return content
        except Exception as exception:
            failure = self.failure(exception, begun=True)
        raise failure

    async def chunks(self) -> AsyncGenerator[bytes]:
        failure: ProviderError
        try:
            async with aclosing(body_of(self.response)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except Exception as exception:
            failure = self.failure(exception, begun=True)
        raise failure

    async def refusal(self) -> ProviderError:
        """Make the error for a status that is no success; the SDK hands such an answer over like any other."""
        page = b""
        with suppress(ProviderError):  # broken off: the status says enough
            page = await self.read()
        return error_from_response(self.status, self.headers, page, **self._names())

    def failure(self, exception: Exception, *, begun: bool = False) -> ProviderError:
        """Make the error for an exception, to be raised outside the `except` block: the exception holds the key."""
        return error_from_exception(exception, **self._names(), begun=begun)

    def _names(self) -> dict[str, Any]:
        return {"provider": self.provider, "model": self.body["model"], "secret": self.secret}


class MistralTransport:
    """Sends through a `Mistral` client; its retries are off.

    Args:
        client: kept, as the SDK closes the connections of a client that nobody holds.
        headers: sent with every request.
    """

    def __init__(self, client: Any, *, provider: str, headers: Mapping[str, str]):
        if not callable(getattr(getattr(client, "chat", None), "stream_async", None)):
            raise ConfigError(f"{type(client).__name__} is no client of the mistralai SDK: pass Mistral(api_key=...)")
        self._client = client
        self._provider = provider
        self._headers = headers
        self._context = _context_class(client)

    @asynccontextmanager
    async def open(self, body: dict[str, Any], *, timeout: float | None) -> AsyncGenerator[Reply]:
        config = self._client.sdk_configuration
        if config.async_client is None:
            raise ConfigError("the Mistral client is closed")
        wait = timeout or (config.timeout_ms or READ_TIMEOUT * 1000) / 1000
        exchange = _Exchange(self._client, body, self._provider, self._headers, wait)
        failure: ProviderError | None = None
        try:
            try:
                exchange.response = await (self._send if self._context else _send_disguised)(exchange)
                if exchange.status >= 400:
                    failure = await exchange.refusal()
            except Exception as exception:
                failure = exchange.failure(exception)
            if failure is not None:
                raise failure
            yield exchange
        finally:
            if exchange.response is not None:
                await exchange.response.aclose()

    async def _send(self, exchange: _Exchange) -> Any:
        """Send by the methods that the SDK's own calls are made of: under 1 ms."""
        config = self._client.sdk_configuration
        request = exchange.chat._build_request_async(**_REQUEST, security=config.security)
        operation = "stream_chat" if exchange.body.get("stream") else "chat_completion_v1_chat_completions_post"
        context = self._context(
            config=config,
            base_url=config.get_server_details()[0],
            operation_id=operation,
            security_source=config.security,
            **_CONTEXT,
        )
        return await exchange.chat.do_request_async(context, request, lambda status: status >= 400, stream=True)

    async def aclose(self) -> None:
        """Close nothing: the client belongs to the provider, or to the user."""


async def _send_disguised(exchange: _Exchange) -> Any:
    """Send by the SDK's stream call, with a body of its own that never leaves: 4 ms, and nothing of it is private."""
    exchange.disguised = True
    return (await exchange.chat.stream_async(model="-", messages=[], retries=None)).response


def _context_class(client: Any) -> Any:
    """Give the class of the SDK's hook contexts, where it and the methods behind a call are there and as expected.

    None where they are not: in another release, or in the SDK's clients for Azure and Google, with other addresses.
    """
    try:
        from mistralai.client import Mistral
        from mistralai.client._hooks import HookContext

        inspect.signature(client.chat._build_request_async).bind(**_REQUEST, security=None)
        inspect.signature(client.chat.do_request_async).bind(None, None, None, stream=True)
        known = {"config": None, "base_url": "", "operation_id": "", "security_source": None}
        inspect.signature(HookContext).bind(**known, **_CONTEXT)
    except (AttributeError, ImportError, TypeError, ValueError):
        return None
    return HookContext if isinstance(client, Mistral) else None
