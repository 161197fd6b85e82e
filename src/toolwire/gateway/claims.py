"""What a request reserves of its key's budgets; pure."""

from collections.abc import Sequence
from math import ceil

from toolwire.agent.usage import cost
from toolwire.errors import ErrorKind
from toolwire.events import Usage
from toolwire.gateway.keys import may_use
from toolwire.gateway.parts import Estimate, GatewayRefusal, Route
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import NANO, Claim, VirtualKey
from toolwire.providers._spec import ModelInfo, Prices

_OVERHEAD = 1_000
"""Tokens that vendors add to a request of their own, such as instructions for tools."""
_UNLIMITED = 32_000
"""Tokens of an answer where neither the client nor the catalogue names a limit."""


def claim_of(
    stored: VirtualKey, record: RequestRecord, estimate: Estimate, route: Route
) -> Claim | None:
    """Returns what a request reserves of its key's budgets; GatewayRefusal if it may not run.

    A hard budget is charged for the dearest model that the route may ask, all bytes of the request
    as tokens, and the longest answer.
    """
    rules = stored.rules
    usable = [one for one in route.all if may_use(rules, route.name, one.opened.name)]
    if not usable:
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f'the key "{stored.name}" may not use "{route.name}"',
            status=403,
            should_retry=False,
        )
    infos = [one.opened.info for one in usable]
    asked = infos if rules.hard else infos[:1]
    unpriced = [one for one, info in zip(usable, infos, strict=True) if _prices(info) is None]
    if unpriced and (rules.refuse_unpriced or (rules.hard and rules.budgets)):
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f"no price of {unpriced[0].opened.name} is known, which the key "
            f'"{stored.name}" requires',
            status=403,
            should_retry=False,
        )
    if not rules.budgets:
        return None
    tokens = estimate.input
    if rules.hard:
        tokens += record.bytes_in + _OVERHEAD
    return Claim(
        id=record.id,
        key=stored.id,
        route=route.name,
        at=record.time,
        budgets=rules.budgets,
        input_cost=max(_input_cost(info, tokens, hard=rules.hard) for info in asked),
        output_price=max(_output_price(info) for info in asked),
        max_output=_most_output(asked, estimate, hard=rules.hard),
        hard=rules.hard,
    )


def _prices(info: ModelInfo | None) -> Prices | None:
    return None if info is None else info.prices


def _input_cost(info: ModelInfo | None, tokens: int, *, hard: bool) -> int:
    prices = _prices(info)
    if prices is None:
        return 0
    usages = [Usage(input=tokens)]
    if hard:
        # Writing to the cache may cost more than reading.
        usages.append(Usage(input=tokens, cache_write=tokens))
    return ceil(max(cost(usage, prices) or 0.0 for usage in usages) * NANO)


def _output_price(info: ModelInfo | None) -> float:
    return (cost(Usage(input=0, output=1), _prices(info)) or 0.0) * NANO


def _most_output(
    infos: Sequence[ModelInfo | None], estimate: Estimate, *, hard: bool
) -> int | None:
    if not hard or estimate.max_output is not None:
        return estimate.max_output
    return max((info.output if info is not None else 0) or _UNLIMITED for info in infos)
