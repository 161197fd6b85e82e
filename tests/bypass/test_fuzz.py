import os
import shutil

import pytest

from tests.bypass.container import why_not
from tests.bypass.fuzz import fuzz

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.skipif(not shutil.which("cc"), reason="the probe is a C program"),
]


@pytest.mark.sweep
def test_a_few_thousand_proven_texts_do_the_same_written_anew():
    check(cases=3000, seed=20, processes=1)


@pytest.mark.attack
def test_proven_texts_do_the_same_written_anew():
    cases = 100_000 if os.environ.get("EXPLORE") else 30_000
    check(cases, seed=1, processes=2)


def check(cases: int, seed: int, processes: int) -> None:
    report = fuzz(cases, seed, processes)
    assert (report.differences, report.errors) == ((), ())
    # Otherwise the texts are too odd, or the prover too strict, for the comparison to mean much.
    assert report.proven >= cases / 4
    assert report.started >= cases / 20
