"""Every recorded exchange of OpenAI and of the services that speak like it, through the real openai SDK."""

from __future__ import annotations

from typing import ClassVar

import pytest

from agent_core import CompletionRequest, Provider, errors
from agent_core.testing import LoopbackServer
from recordings.oracle import Recording
from recordings.replay import RecordedExchanges, completion_of, sent_body, streamed


class TestOpenAICompatible(RecordedExchanges):
    """OpenAI, Azure, and 20 services without an SDK of their own here."""

    vendor = "openai"
    # A context that is too long has a type of its own at llama.cpp and Perplexity; DeepSeek, Ollama and OpenRouter tell
    # it only in the message.
    refusals: ClassVar[dict[str, tuple[type[errors.ProviderError], str | None]]] = {
        "azure-openai/error-401-auth": (errors.AuthenticationError, "401"),
        "azure-openai/error-404-invalid-request": (errors.NotFoundError, "DeploymentNotFound"),
        "azure-openai/error-429-rate-limit": (errors.RateLimitError, "RateLimitReached"),
        "deepseek/error-400-context-overflow": (errors.ContextLengthError, "invalid_request_error"),
        "deepseek/error-400-model": (errors.BadRequestError, "invalid_request_error"),
        "deepseek/error-400-tool-choice-rejected": (errors.BadRequestError, "invalid_request_error"),
        "deepseek/error-400-unsupported-content": (errors.BadRequestError, "invalid_request_error"),
        "deepseek/error-401-auth": (errors.AuthenticationError, "invalid_request_error"),
        "doubleword/error-400-invalid-request": (errors.BadRequestError, "400"),
        "doubleword/error-400-invalid-request-2": (errors.BadRequestError, "400"),
        "doubleword/error-403-auth": (errors.PermissionDeniedError, "forbidden"),
        "doubleword/error-403-auth-2": (errors.PermissionDeniedError, "forbidden"),
        "doubleword/error-404-model": (errors.NotFoundError, "model_not_found"),
        "doubleword/error-404-model-2": (errors.NotFoundError, "model_not_found"),
        "huggingface-router/error-422-invalid-request": (errors.BadRequestError, None),
        "hyperbolic/error-400-invalid-request": (errors.BadRequestError, "40301"),
        "llamacpp/error-400-context-overflow": (errors.ContextLengthError, "400"),
        "llamacpp/error-400-context-overflow-2": (errors.ContextLengthError, "400"),
        "llamacpp/error-400-invalid-request": (errors.BadRequestError, "400"),
        "llamacpp/error-400-unsupported-content": (errors.BadRequestError, "400"),
        "llamacpp/error-401-auth": (errors.AuthenticationError, "401"),
        "llamacpp/error-500-invalid-request": (errors.ServerError, "500"),
        "llamacpp/error-500-unsupported-content": (errors.ServerError, "500"),
        "ollama/error-400-context-overflow": (errors.ContextLengthError, "invalid_request_error"),
        "ollama/error-401-auth": (errors.AuthenticationError, "api_error"),
        "openai/error-400-invalid-request": (errors.BadRequestError, "unsupported_parameter"),
        "openai/error-400-invalid-request-2": (errors.BadRequestError, "invalid_image_url"),
        "openai/error-400-model": (errors.BadRequestError, "invalid_request_error"),
        "openai/error-400-unsupported-content": (errors.BadRequestError, "invalid_value"),
        "openai/error-400-unsupported-content-2": (errors.BadRequestError, "invalid_image_format"),
        "openai/error-400-unsupported-role": (errors.BadRequestError, "unsupported_value"),
        "openai/error-401-auth": (errors.AuthenticationError, "invalid_api_key"),
        "openai/error-401-auth-2": (errors.AuthenticationError, "invalid_api_key"),
        "openai/error-404-model": (errors.NotFoundError, "model_not_found"),
        "openai/error-404-model-2": (errors.NotFoundError, "model_not_found"),
        "openrouter/error-400-context-overflow": (errors.ContextLengthError, "400"),
        "openrouter/error-400-model": (errors.BadRequestError, "400"),
        "openrouter/error-401-auth": (errors.AuthenticationError, "401"),
        "openrouter/error-429-rate-limit": (errors.RateLimitError, "429"),
        "perplexity/error-400-context-overflow": (errors.ContextLengthError, "400"),
        "perplexity/error-401-auth": (errors.AuthenticationError, "401"),
        "venice/error-404-model": (errors.NotFoundError, None),
        "venice/error-404-model-2": (errors.NotFoundError, None),
    }
    broken_off: ClassVar[dict[str, tuple[type[errors.ProviderError], int, str]]] = {
        "openrouter/stream-error-midway": (errors.BadRequestError, 400, "400"),
    }

    @classmethod
    def groups(cls) -> dict[str, list[Recording]]:
        """Those of the suite, and what these tests need besides."""
        groups = super().groups()
        return groups | {
            "limited": [one for one in groups["refused"] if one.status == 429],
            "thoughtful": [
                one
                for one in groups["recording"]
                if any(key.startswith("reasoning") for message in one.request["messages"] for key in message)
            ],
        }

    async def test_a_rate_limit_tells_how_long_to_wait(
        self, limited: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """The wait comes from the header, in seconds; without one it is unknown."""
        with pytest.raises(errors.RateLimitError) as caught:
            await completion_of(provider, server, limited)
        told = limited.headers.get("retry-after")
        assert caught.value.retry_after == (None if told is None else float(told))

    async def test_the_error_beside_a_last_chunk_is_told_in_its_words(
        self, broken: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """OpenRouter puts it beside choices and usage."""
        with pytest.raises(errors.BadRequestError, match="Token limit reached"):
            await streamed(provider, server, broken)

    async def test_the_reasoning_of_a_request_leaves_under_a_name_it_came_with(
        self, thoughtful: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """DeepSeek refuses a conversation without it, OpenRouter one whose details have changed."""
        messages = thoughtful.request["messages"]
        body = await sent_body(provider, server, CompletionRequest(model="m", messages=messages))
        for sent, given in zip(body["messages"], messages, strict=True):
            assert sent.get("reasoning_details") == given.get("reasoning_details")
            names = [name for name in ("reasoning_content", "reasoning") if given.get(name)]
            assert not names or [sent[name] for name in names if name in sent][:1] == [given[names[0]]]
