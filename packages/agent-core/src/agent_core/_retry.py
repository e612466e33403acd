"""When a failed request is sent again, and how long to wait before: the only place that decides it.

The SDKs' own retries are off, and the loop has none. Nothing is sent again once a piece of the answer was handed out.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from .errors import ConfigError, ProviderError, ToolUseFailedError

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and after which wait, a request that failed for a passing reason is sent again.

    Attributes:
        max_retries: tries after the first one.
        initial_delay: wait before the first of them (seconds); it doubles each time, up to `max_delay`.
        max_delay: longest wait of our own (seconds).
        jitter: share of the wait that is left to chance, so that clients do not come back all at once (0 to 1).
        max_retry_after: longest wait that a vendor may ask for (seconds); a longer one is raised at once.
        deadline: no retry starts later than this after the first try (seconds); None for no limit.
    """

    max_retries: int = 2
    initial_delay: float = 0.5
    max_delay: float = 8.0
    jitter: float = 0.25
    max_retry_after: float = 60.0
    deadline: float | None = None

    def __post_init__(self) -> None:
        numbers = (self.max_retries, self.initial_delay, self.max_delay, self.max_retry_after, self.deadline or 0.0)
        if not all(number >= 0 for number in numbers) or not 0 <= self.jitter <= 1:  # NaN is neither
            raise ConfigError(f"retry policy: numbers must not be negative, and jitter not above 1: {self}")

    def start(self) -> Attempts:
        """Begin to count the tries of one request."""
        return Attempts(self)


class Attempts:
    """The tries of one request. `made` counts them, the running one included."""

    __slots__ = ("_policy", "_started", "made")

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._started = time.monotonic()
        self.made = 1

    def wait_before_next(self, error: ProviderError) -> float | None:
        """Give the wait before another try (seconds) and count it, or None where the error is to be raised."""
        policy = self._policy
        # What the model wrote wrong needs another request, with the failed text, and not the same one again.
        if not error.retryable or self.made > policy.max_retries or isinstance(error, ToolUseFailedError):
            return None
        if error.retry_after is not None:
            if error.retry_after > policy.max_retry_after:
                return None
            wait = error.retry_after
        else:
            wait = min(policy.initial_delay * 2.0 ** min(self.made - 1, 64), policy.max_delay)
            wait *= 1 - policy.jitter * random.random()
        if policy.deadline is not None and time.monotonic() - self._started + wait > policy.deadline:
            return None
        self.made += 1
        return wait
