import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import ROOT, examples_of, printed_by
from toolwire.simulator import Call, replies, reply

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_library_example_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = examples_of("README.md")
    script = replies(
        reply(Call.of("word_count", path="notes.txt")), "notes.txt has {last_result} words."
    )
    printed = printed_by(example.code, script, tmp_path, monkeypatch).splitlines()
    assert len(printed) == 1
    assert all(f"`{line}`" in README for line in printed)


def test_the_recorded_answer_is_decoded_as_shown() -> None:
    shown = README.partition("< docs/answer.sse\n")[2].partition(", …}")[0]
    answer = (ROOT / "docs" / "answer.sse").read_bytes()
    program = Path(sys.executable).with_name("toolwire")
    done = subprocess.run(
        [program, "decode", "openai-chat"], input=answer, capture_output=True, check=True
    )
    decoded = json.loads(done.stdout)
    assert json.loads(shown + "}").items() <= decoded.items()


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []
