import io
import json
from pathlib import Path

from toolwire.client.redact import Secret
from toolwire.events import Usage
from toolwire.gateway.access_log import AccessLog, json_line, text_line
from toolwire.gateway.record import RequestRecord

RECORD = RequestRecord(
    id="req_1",
    time=1_700_000_000.25,
    path="/v1/messages",
    key="ada",
    client="claude-code",
    client_format="anthropic-messages",
    provider="google",
    model="gemini-3-pro",
    status=200,
    usage=Usage(input=1204, output=88),
    cost=0.0042,
    cost_source="table",
    duration=2.1,
    losses=2,
)


def test_a_line_is_a_json_object_with_what_is_known():
    line = json.loads(json_line(RECORD))
    assert line["time"] == "2023-11-14T22:13:20.250Z"
    assert line["usage"] == {"input": 1204, "output": 88}
    assert (line["status"], line["cost"], line["losses"]) == (200, 0.0042, 2)
    assert "error" not in line
    assert "retries" not in line


def test_a_line_of_an_empty_record_has_only_what_each_has():
    assert json_line(
        RequestRecord(id="x", cost=0.0, duration=float("1e-9"), waited=float("0"))
    ) == ('{"id":"x","time":"1970-01-01T00:00:00.000Z","method":"POST","usage":{},"duration":0.0}')


def test_a_line_for_people_is_short():
    line = text_line(RECORD).partition(" ")[2]
    wanted = "claude-code → google/gemini-3-pro  200  2.1 s  1,204+88 tok  $0.004  2 losses"
    assert line == wanted


def test_no_text_of_others_breaks_a_line_or_shows_a_secret():
    secret = Secret("sentinel-of-the-log-7f3a")
    record = RequestRecord(
        id="x", error="auth", error_message=f"bad\x1b[31m\r\n{secret.reveal()}\u2028\x85\x7f"
    )
    for line in (json_line(record), text_line(record)):
        assert len(line.splitlines()) == 1
        assert secret.reveal() not in line
        assert "\x1b" not in line
    assert json.loads(json_line(record))["error"] == "auth"


def test_a_file_can_be_rotated_and_a_broken_stream_ends_no_request(tmp_path: Path):
    log = AccessLog("json", path=tmp_path / "log")
    log(RECORD)
    (tmp_path / "log").rename(tmp_path / "old")
    log.reopen()
    log(RECORD)
    log(RECORD)
    log.close()
    lines = [len((tmp_path / name).read_text().splitlines()) for name in ("old", "log")]
    assert lines == [1, 2]
    stream = io.StringIO()
    stream.close()
    closed = AccessLog("text", stream=stream)
    closed(RECORD)
    assert closed.lost == 1
