"""Every recorded exchange of Together, through the real together SDK."""

from __future__ import annotations

import pytest

from agent_core import Provider
from agent_core.testing import LoopbackServer
from recordings.oracle import Recording, chunks_of, read_stream, read_whole
from recordings.replay import CUTS, CutName, RecordedExchanges, completion_of, streamed
from vendors import provider_of


class TestTogether(RecordedExchanges):
    """Models of the Llama, Qwen and DeepSeek-R1 families. No refusal was recorded."""

    vendor = "together"

    @classmethod
    def groups(cls) -> dict[str, list[Recording]]:
        """Those of the suite, and what these tests need besides."""
        groups = super().groups()
        return groups | {
            "tagged_stream": [one for one in groups["stream"] if "<think>" in one.sse],
            "twice_finished": [one for one in groups["stream"] if one.sse.count('"finish_reason":"') > 1],
            "told_to_wait": [one for one in groups["whole"] if "retry-after" in one.headers],
        }

    async def test_think_tags_of_r1_are_reasoning_unasked(self, tagged: Recording, server: LoopbackServer) -> None:
        """The dialect knows the models that write them; an answer that was cut off in its thoughts has no text."""
        _, _, after = read_whole(tagged.body).choices[0].text.partition("</think>")
        async with provider_of("together", server.url) as provider:
            completion = await completion_of(provider, server, tagged)
        assert completion.reasoning
        assert "think>" not in completion.text + completion.reasoning
        assert completion.text.strip() == after.strip()

    @pytest.mark.parametrize("cut", CUTS)
    async def test_think_tags_of_a_stream_are_reasoning_unasked(
        self, tagged_stream: Recording, cut: CutName, server: LoopbackServer
    ) -> None:
        """The tag is a delta of its own there, and no delta shows it."""
        inside, _, after = read_stream(tagged_stream.sse).choices[0].text.partition("<think>")[2].partition("</think>")
        async with provider_of("together", server.url) as provider:
            deltas, completion = await streamed(provider, server, tagged_stream, cut)
        assert (completion.reasoning.strip(), completion.text.strip()) == (inside.strip(), after.strip())
        assert not any("think>" in delta.text + delta.reasoning for delta in deltas)

    async def test_a_finish_reason_that_comes_twice_ends_nothing(
        self, twice_finished: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Another call may start after the first one; the last one counts."""
        _, completion = await streamed(provider, server, twice_finished)
        pieces = [
            piece
            for chunk in chunks_of(twice_finished.sse)
            for choice in chunk["choices"]
            for piece in choice["delta"].get("tool_calls") or []
        ]
        assert len(completion.tool_calls) == len({piece["index"] for piece in pieces}) > 0
        assert completion.finish_reason == "tool_calls"
        assert all(call.parse() for call in completion.tool_calls)

    async def test_a_wait_beside_a_good_answer_means_nothing(
        self, told_to_wait: Recording, provider: Provider, server: LoopbackServer
    ) -> None:
        """Together sends retry-after with success too."""
        completion = await completion_of(provider, server, told_to_wait)
        assert completion.attempts == 1
