"""What each vendor refuses."""

from __future__ import annotations

from typing import Any

from ._failures import Failure

__all__ = ["refusal_of"]


def refusal_of(vendor: str, request: Any) -> Failure | None:
    """Give the error with which this vendor would answer a request body, or None where it takes it."""
    if not isinstance(request, dict):
        return Failure(400, "The body of the request is no JSON object.", "invalid_request_error")
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        return Failure(400, "The messages are missing.", "invalid_request_error", None, "messages")
    return None
