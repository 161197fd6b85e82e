import io

import pytest

from toolwire.cli.consent import Bar, bar, consent, words
from toolwire.embedded.partial import Progress


def progress(done: int, speed: float = 0.0) -> Progress:
    return Progress(done=done, total=1_117_320_768, speed=speed, source="huggingface.co")


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (progress(0), "0 bytes of 1.1 GB (huggingface.co)"),
        (
            progress(412_000_000, 10_500_000),
            "412 MB of 1.1 GB, 10 MB/s, 67 s left (huggingface.co)",
        ),
        (progress(0, 100_000), "0 bytes of 1.1 GB, 100 kB/s, 3.1 h left (huggingface.co)"),
        (progress(1_117_320_768, 5e6), "1.1 GB of 1.1 GB, 5 MB/s (huggingface.co)"),
    ],
)
def test_progress_in_words(moment: Progress, said: str):
    assert words(moment) == said


def test_the_bar_fills_up():
    assert bar(progress(0)).startswith("[························]")
    assert bar(progress(558_660_384)).startswith("[████████████············]")
    assert bar(progress(1_117_320_768)).startswith("[████████████████████████]")


def test_where_no_one_watches_the_beginning_and_the_end_are_reported():
    out = io.StringIO()
    shown = Bar(out)
    for done in (0, 1_000_000, 2_000_000, 1_117_320_768):
        shown.show(progress(done))
    assert out.getvalue().splitlines() == [
        "0 bytes of 1.1 GB (huggingface.co)",
        "1.1 GB of 1.1 GB (huggingface.co)",
    ]


def test_without_a_terminal_no_one_is_asked():
    found = consent(None, True)
    assert found.yes
    assert found.ask is None
