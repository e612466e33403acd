"""agent-core: one completion type, one tool loop and one agent for every LLM vendor."""

from . import errors
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
from ._history import FittedHistory, fit_history
from ._messages import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
)
from ._model import Model
from ._provider import CompletionStream, Provider
from ._registry import installed_providers, load_model, load_provider
from ._retry import RetryPolicy
from .chatwire import OpenAICompatibleProvider
