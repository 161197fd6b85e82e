"""Tokens and cost of one request, by the vendor's counts or by its length."""

import msgspec

from toolwire.agent.usage import summed
from toolwire.app.model_stack import Opened
from toolwire.events import Finished, Usage
from toolwire.gateway.counting import Calibration, estimate
from toolwire.gateway.parts import Estimate
from toolwire.gateway.record import RequestRecord
from toolwire.request import AttemptMeter, ModelRequest

_BYTES_PER_TOKEN = 4


class AnswerMeter:
    """Fills in usage and cost of one record."""

    _weight = 0
    _input = 0
    opened: Opened | None = None
    """The model that is asked."""
    written = 0
    """Characters of the answer so far."""

    def __init__(self, record: RequestRecord, calibration: Calibration) -> None:
        self._record = record
        self._calibration = calibration
        self.attempts = AttemptMeter()

    def estimate(self, request: ModelRequest) -> Estimate:
        """What the request may use; `record.route` is known."""
        self._weight = estimate(request)
        self._input = self._calibration.tokens(self._record.route, self._weight)
        return Estimate(input=self._input, max_output=request.max_output_tokens)

    def count(self, finished: Finished) -> None:
        """Counts a complete answer, and the attempts before it."""
        record = self._record
        record.stop_reason = finished.reason.value
        usage = finished.usage
        self._calibration.counted(record.route, self._weight, usage)
        for failed in self.attempts.failed:
            usage = usage if failed is None else summed(usage, failed)
        record.usage = usage
        self._price(usage)

    def count_partial(self) -> None:
        """Counts an answer without an end: by the vendor's counts so far, else by its length."""
        record = self._record
        usages = [*self.attempts.failed]
        if self.attempts.reading is not None:
            usages.append(self.attempts.reading())
        known = [usage for usage in usages if usage is not None]
        total = Usage()
        for usage in known:
            total = summed(total, usage)
        if record.first_event is not None and not total.output:
            output = self.written // _BYTES_PER_TOKEN + 1
            total = msgspec.structs.replace(total, input=total.input or self._input, output=output)
            record.usage_estimated = True
        record.usage = total
        if known or record.usage_estimated:
            self._price(total)
            if record.cost is not None and record.usage_estimated:
                record.cost_source = "estimate"

    def _price(self, usage: Usage) -> None:
        record = self._record
        if self.opened is None:
            return
        record.cost = self.opened.price(usage)
        if record.cost is not None:
            record.cost_source = "vendor" if usage.cost is not None else "table"
