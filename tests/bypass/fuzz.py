"""Differential fuzzer: what is proven must do the same written anew as it was written.

`python -m tests.bypass.fuzz --cases 100000 --seed 1` prints the counts and every difference.
"""

import argparse
import os
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tests.bypass.container import contained

_UNSTEADY = re.compile(
    r"\0|/proc|(?:^|\s)/+(?:\s|$)|\b(?:declare|typeset|set|compgen|history|hash|alias|shopt)\b"
)
"""Texts that print the state of the shell or of processes, which the text itself is part of, and
aliases, which count from the next line on: no table allows them.
"""
HOME = "/home/dev"
_ROUNDS = 3
"""Parts of a pipeline write over each other now and then: only what differs each time counts."""


class Difference(msgspec.Struct, frozen=True):
    """A proven text that does something else than its original."""

    text: str
    anew: str
    original: str
    rewritten: str


class Report(msgspec.Struct, frozen=True):
    """What one run of the fuzzer found."""

    cases: int = 0
    proven: int = 0
    started: int = 0
    """How many of the proven texts started a probe."""
    changed: int = 0
    """How many of the proven texts changed a file."""
    differences: tuple[Difference, ...] = ()
    errors: tuple[str, ...] = ()


_report = msgspec.json.Decoder(Report)


def fuzz(cases: int, seed: int, processes: int = 2, seconds: float = 1800) -> Report:
    """Run that many random texts, spread over containers."""
    share = -(-cases // processes)

    def part(number: int) -> Report:
        done = contained(
            [sys.executable, "-m", "tests.bypass.fuzz", "--inside", str(share), str(seed + number)],
            seconds=seconds,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return _report.decode(done.stdout)

    with ThreadPoolExecutor(processes) as pool:
        reports = list(pool.map(part, [number * 1000 for number in range(processes)]))
    return Report(
        cases=sum(one.cases for one in reports),
        proven=sum(one.proven for one in reports),
        started=sum(one.started for one in reports),
        changed=sum(one.changed for one in reports),
        differences=tuple(found for one in reports for found in one.differences),
        errors=tuple(found for one in reports for found in one.errors),
    )


def _inside(cases: int, seed: int) -> Report:
    from tests.bypass.fuzz_run import Runner, compile_probe
    from tests.bypass.fuzz_texts import random_text, seeds
    from toolwire.policy.shell import Unproven, prove

    compile_probe()
    chance = random.Random(seed)
    runner = Runner(HOME)
    pool = seeds()
    proven = started = changed = 0
    differences: list[Difference] = []
    errors: list[str] = []
    for _ in range(cases):
        text = random_text(chance, pool)
        try:
            script = prove(text)
        except Exception as error:
            errors.append(f"{text!r}: {error!r}")
            continue
        if isinstance(script, Unproven) or _UNSTEADY.search(f"{text}\n{script.text}"):
            continue
        proven += 1
        original = runner.run(text)
        rewritten = runner.run(script.text)
        started += bool(original.started)
        changed += bool(original.files)
        if original != rewritten and all(
            runner.run(text) != runner.run(script.text) for _ in range(_ROUNDS)
        ):
            differences.append(Difference(text, script.text, repr(original), repr(rewritten)))
            if len(differences) > 200:
                break
    return Report(cases, proven, started, changed, tuple(differences), tuple(errors))


def main() -> None:
    """The command line, outside of the container and inside."""
    if sys.argv[1:2] == ["--inside"]:
        report = _inside(int(sys.argv[2]), int(sys.argv[3]))
        sys.stdout.buffer.write(msgspec.json.encode(report))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    start = time.monotonic()
    report = fuzz(options.cases, options.seed, options.processes)
    for one in report.differences:
        print(f"{one.text!r}\n  anew      {one.anew!r}")
        print(f"  original  {one.original}\n  rewritten {one.rewritten}")
    for one in report.errors:
        print(f"error: {one}")
    taken = time.monotonic() - start
    print(
        f"{report.cases} texts, {report.proven} proven, {report.started} started a program, "
        f"{report.changed} changed a file, {len(report.differences)} differences, "
        f"{len(report.errors)} errors, {report.cases / taken:.0f} texts/s"
    )


if __name__ == "__main__":
    main()
