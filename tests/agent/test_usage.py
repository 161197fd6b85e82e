import pytest

from toolwire.agent.usage import cost
from toolwire.events import Usage
from toolwire.providers._spec import Prices

PRICES = Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)


@pytest.mark.parametrize(
    ("usage", "prices", "dollars"),
    [
        (Usage(input=1_000_000, output=100_000), PRICES, 4.5),
        (Usage(input=1_000_000, cached=400_000, output=0), PRICES, 1.92),
        (Usage(input=600_000, cached=400_000, output=0, cache_in_input=False), PRICES, 1.92),
        (
            Usage(input=0, cached=1_000_000, cache_write=1_000_000, output=0, cache_in_input=False),
            PRICES,
            4.05,
        ),
        (Usage(output=100_000, reasoning=100_000), PRICES, 1.5),
        (Usage(output=100_000, reasoning=100_000, reasoning_in_output=False), PRICES, 3.0),
        (Usage(input=1_000_000, cached=1_000_000), Prices(input=2.0), 2.0),
        (Usage(input=5, output=5, cost=0.25), PRICES, 0.25),
        (Usage(input=5, output=5, cost=0.25), None, 0.25),
        (Usage(), PRICES, None),
        (Usage(input=5, output=5), None, None),
        (Usage(input=10, cached=50), Prices(input=1.0, cache_read=0.0), 0.0),
    ],
)
def test_tokens_become_dollars(usage: Usage, prices: Prices | None, dollars: float | None) -> None:
    assert cost(usage, prices) == (None if dollars is None else pytest.approx(dollars))
