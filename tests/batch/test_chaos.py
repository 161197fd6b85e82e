from collections.abc import Callable
from pathlib import Path

import pytest

from tests.batch.chaos import Tally, run_chaos


def judged(tally: Tally) -> None:
    assert tally.complaints == []
    assert (tally.lost, tally.twice, tally.wrong, tally.left) == (0, 0, 0, 0)
    # Each kill leaves at most the calls that were running: four sessions with one each.
    assert tally.unknown <= 4 * tally.points


def test_killed_hosts_and_drivers_lose_nothing(tmp_path: Path):
    judged(run_chaos(tmp_path, batches=1, points=2, seed=7, tasks=2))


@pytest.mark.sweep
def test_hundreds_of_kills_lose_nothing(tmp_path: Path, counted: Callable[[str], None]):
    tally = run_chaos(tmp_path, batches=72, points=10, seed=1)
    judged(tally)
    assert tally.points >= 500
    counted(f"batches under SIGKILL: {tally}")


@pytest.mark.sweep
@pytest.mark.usefixtures("alone_on_ray")
def test_a_kill_of_each_kind_on_ray_loses_nothing(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    from tests.batch.chaos_ray import ShortRayChaos

    tally = run_chaos(
        tmp_path, batches=1, points=4, seed=5, tasks=12, server=True, kind=ShortRayChaos
    )
    counted(f"a kill of each kind on Ray: {tally}")
    judged(tally)
    assert tally.points == 4
    assert tally.drivers == 1
    assert tally.unknown, "calls wait for the end of the kills, so some were interrupted"


@pytest.mark.long
@pytest.mark.usefixtures("alone_on_ray")
def test_nothing_is_lost_or_done_twice_on_ray(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    from tests.batch.chaos_ray import RayChaos

    tally = run_chaos(tmp_path, batches=2, points=7, seed=5, server=True, kind=RayChaos)
    counted(f"batches on Ray: {tally}")
    judged(tally)
    assert tally.points >= 14


@pytest.mark.sweep
@pytest.mark.usefixtures("alone_on_ray")
def test_hosts_that_a_server_does_not_answer_do_nothing_twice(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    from tests.batch.chaos_ray import SilentChaos

    tally = run_chaos(tmp_path, batches=1, points=2, seed=9, tasks=8, server=True, kind=SilentChaos)
    counted(f"silence between hosts and server: {tally}")
    judged(tally)
    assert tally.silences


@pytest.mark.sweep
def test_nothing_is_lost_or_done_twice_with_sessions_on_a_server(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    tally = run_chaos(tmp_path, batches=6, points=8, seed=3, server=True)
    counted(str(tally))
    judged(tally)
    assert tally.servers
