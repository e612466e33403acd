"""agent-core: one completion type and one tool loop for every LLM vendor."""

from . import errors
from ._abort import AbortSignal
from ._completion import (
    Choice,
    Completion,
    CompletionRequest,
    FinishReason,
    FunctionDefinition,
    ToolDefinition,
    Usage,
)
from ._deltas import Accumulator, CallDelta, CompletionDelta, accumulate
from ._engine import CompletionFinished, EngineEvent, RequestStarted, ToolFinished, ToolStarted
from ._history import FittedHistory, fit_history
from ._hooks import ToolLoopHooks
from ._loop import LoopFinished, ToolLoopResult, ToolLoopStream, run_tool_loop, stream_tool_loop
from ._messages import Message
from ._model import Model
from ._parts import AudioPart, FilePart, ImagePart, OtherPart, ReasoningPart, RefusalPart, TextPart, ToolCall
from ._provider import Completer, CompletionStream, Provider
from ._registry import installed_providers, load_model, load_provider
from ._retry import RetryPolicy
from ._tools import AgentAction, ToolHandlerResult, ToolResponse
from .chatwire import OpenAICompatibleProvider

__all__ = [
    "AbortSignal",
    "Accumulator",
    "AgentAction",
    "AudioPart",
    "CallDelta",
    "Choice",
    "Completer",
    "Completion",
    "CompletionDelta",
    "CompletionFinished",
    "CompletionRequest",
    "CompletionStream",
    "EngineEvent",
    "FilePart",
    "FinishReason",
    "FittedHistory",
    "FunctionDefinition",
    "ImagePart",
    "LoopFinished",
    "Message",
    "Model",
    "OpenAICompatibleProvider",
    "OtherPart",
    "Provider",
    "ReasoningPart",
    "RefusalPart",
    "RequestStarted",
    "RetryPolicy",
    "TextPart",
    "ToolCall",
    "ToolDefinition",
    "ToolFinished",
    "ToolHandlerResult",
    "ToolLoopHooks",
    "ToolLoopResult",
    "ToolLoopStream",
    "ToolResponse",
    "ToolStarted",
    "Usage",
    "accumulate",
    "errors",
    "fit_history",
    "installed_providers",
    "load_model",
    "load_provider",
    "run_tool_loop",
    "stream_tool_loop",
]
