import pytest

from tests.bypass.archives import archive_cases
from tests.bypass.case import Case
from tests.bypass.container import why_not
from tests.bypass.judge import failures
from tests.bypass.worker import run_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.mark.sweep
def test_a_sample_of_what_archives_bring_is_used_only_inside_the_workspace():
    check(archive_cases()[::25])


@pytest.mark.attack
def test_what_archives_bring_is_used_only_inside_the_workspace():
    check(archive_cases())


def check(cases: tuple[Case, ...]) -> None:
    seen = run_cases(cases)
    broken = {
        f"{case.mode} {case.before!r} {case.title}"[:300]: found
        for case, one in zip(cases, seen, strict=True)
        if (found := failures(case, one))
    }
    assert broken == {}
