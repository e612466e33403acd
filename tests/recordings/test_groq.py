"""Every recorded exchange of Groq, through the real groq SDK."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from agent_core import Provider, errors
from agent_core.testing import LoopbackServer
from recordings.oracle import Recording, chunks_of, read_whole
from recordings.replay import RecordedExchanges, completion_of, streamed
from vendors import provider_of


class TestGroq(RecordedExchanges):
    """Models of the gpt-oss, Qwen, Llama and Kimi families, and the compound systems with tools of their own."""

    vendor = "groq"
    refusals: ClassVar[dict[str, tuple[type[errors.ProviderError], str | None]]] = {
        "groq/error-400-tool-use-failed": (errors.ToolUseFailedError, "tool_use_failed"),
        "groq/error-400-tool-use-failed-2": (errors.ToolUseFailedError, "tool_use_failed"),
        "groq/error-401-auth": (errors.AuthenticationError, "invalid_api_key"),
        "groq/error-404-model": (errors.NotFoundError, "model_not_found"),
        "groq/error-404-model-2": (errors.NotFoundError, "model_not_found"),
    }
    broken_off: ClassVar[dict[str, tuple[type[errors.ProviderError], int, str]]] = {
        "groq/stream-error-midway": (errors.ToolUseFailedError, 400, "tool_use_failed"),
    }

    @classmethod
    def groups(cls) -> dict[str, list[Recording]]:
        """Those of the suite, and what these tests need besides."""
        groups = super().groups()
        return groups | {
            "failed_call": [one for one in groups["refused"] if one.body["error"].get("failed_generation")],
            "compound": [one for one in groups["whole"] if "executed_tools" in one.body["choices"][0]["message"]],
        }

    async def test_a_failed_call_keeps_what_the_model_wrote(
        self, failed_call: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """`failed_generation` is the text as sent."""
        with pytest.raises(errors.ToolUseFailedError) as caught:
            await completion_of(provider, server, failed_call)
        assert caught.value.failed_generation == failed_call.body["error"]["failed_generation"]

    async def test_a_call_that_fails_in_a_stream_keeps_the_text_before_it(
        self, broken: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """There `failed_generation` is empty, and the text has come as content."""
        with pytest.raises(errors.ToolUseFailedError) as caught:
            await streamed(provider, server, broken)
        assert caught.value.failed_generation == ""
        assert caught.value.partial is not None
        assert (caught.value.partial.text, caught.value.partial.finish_reason) == ("maybe", "unknown")

    async def test_think_tags_of_qwen_are_reasoning_unasked(self, tagged: Recording, server: LoopbackServer) -> None:
        """The dialect knows the models that write them."""
        async with provider_of("groq", server.url) as provider:
            completion = await completion_of(provider, server, tagged)
        assert completion.reasoning
        assert "think>" not in completion.text + completion.reasoning
        assert completion.text.strip() == read_whole(tagged.body).choices[0].text.partition("</think>")[2].strip()

    async def test_tools_that_the_service_ran_are_extras(
        self, compound: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """They are no calls to run here; the usage of each model in it is an extra too."""
        completion = await completion_of(provider, server, compound)
        assert completion.extras["executed_tools"] == compound.body["choices"][0]["message"]["executed_tools"]
        assert completion.extras["usage_breakdown"] == compound.body["usage_breakdown"]
        assert completion.tool_calls == []
        assert completion.finish_reason == "stop"

    async def test_the_timings_of_a_stream_are_extras_of_its_usage(
        self, stream: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Queue, prompt, completion and total time, in the seconds that were sent; `x_groq` stays as it came."""
        _, completion = await streamed(provider, server, stream)
        blocks: list[dict[str, Any]] = [chunk["x_groq"] for chunk in chunks_of(stream.sse) if chunk.get("x_groq")]
        assert completion.usage is not None
        times = {name: value for name, value in blocks[-1]["usage"].items() if name.endswith("_time")}
        assert len(times) == 4
        assert completion.usage.extras == times
        assert completion.extras["x_groq"]["id"] == blocks[0]["id"]
