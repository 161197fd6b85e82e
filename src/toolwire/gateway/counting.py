"""Token counts of requests, estimated and calibrated by what vendors counted before."""

from collections import OrderedDict

from toolwire.compaction.tokens import of_message, of_part, of_tools
from toolwire.events import Usage
from toolwire.request import JsonObject, ModelRequest

HEADER = "toolwire-count"
_MARGIN = 1.1
"""Rather too high: by a low figure clients compact too late."""
_LOWEST, _HIGHEST = 0.5, 3.0
_MODELS = 500
_FEW = 200
"""Tokens below which a count says more of the vendor's own text than of ours."""


def estimate(request: ModelRequest) -> int:
    """Tokens of a request: instructions, tools, media and messages."""
    head = sum(map(of_part, request.system)) + of_tools(request.tools)
    return head + sum(map(of_message, request.messages))


class Calibration:
    """How many tokens vendors count for each estimated one, by model."""

    def __init__(self) -> None:
        self._scales: OrderedDict[str, float] = OrderedDict()

    def counted(self, model: str, estimated: int, usage: Usage) -> None:
        """Takes note of a vendor's count; the last one of a model is used."""
        if usage.total_input < _FEW or estimated <= 0:
            return
        self._scales[model] = min(max(usage.total_input / estimated, _LOWEST), _HIGHEST)
        self._scales.move_to_end(model)
        if len(self._scales) > _MODELS:
            self._scales.popitem(last=False)

    def tokens(self, model: str, estimated: int) -> int:
        """Tokens of a request as the model's vendor would probably count them, rather too many."""
        return int(estimated * self._scales.get(model, 1.0) * _MARGIN) + 1


def count_answer(client_format: str, tokens: int) -> JsonObject:
    """The body that answers a client's request for a count."""
    if client_format in ("gemini", "code-assist"):
        return {"totalTokens": tokens}
    if client_format == "openai-responses":
        return {"object": "response.input_tokens", "input_tokens": tokens}
    return {"input_tokens": tokens}
