import pytest

from tests.bypass.canaries import leaked
from tests.bypass.case import Case, shell
from tests.bypass.container import why_not
from tests.bypass.worker import run_cases

EFFECTS = {
    "ls": set(),
    "cat a.txt": set(),
    "cat .env": {"leak", "read"},
    "base64 link-secret": {"leak", "read"},
    "cat .env | gzip": {"read"},
    "cat /proc/*/environ": {"leak"},
    "ls ~": {"read"},
    "/srv/canary/mark": {"run"},
    "bash -c 'git status'": {"run"},
    "bash -c 'git diff'": {"run"},
    "bash -c 'cd nested && git status'": {"run"},
    "touch x": {"write"},
    "rm a.txt": {"remove"},
    "echo x > link-notes": {"write-outside"},
    "echo x >> /home/dev/notes": {"write-outside"},
    'python3 -c \'open(".git/config", "a").write("x")\'': {"write-protected"},
    "curl -s http://127.0.0.1:8099/": {"network"},
    "pkill -x sleep": {"kill"},
}


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_canaries_notice_what_commands_do_when_everything_may_run():
    cases = [Case(calls=(shell(text),), mode="yolo") for text in EFFECTS]
    seen = run_cases(cases)
    assert {
        text: {effect.split(":")[0] for effect in one.effects}
        for text, one in zip(EFFECTS, seen, strict=True)
    } == EFFECTS


def test_encoded_secrets_count_as_leaked():
    assert leaked("nothing") == []
    for text in (
        "key: CNRYdotenv7Q2x",
        "x2Q7vnetodYRNC",
        "PAELqbgrai7D2k",
        "YWJjQ05SWWRvdGVudjdRMng=",
        "434e5259646f74656e763751 3278",
    ):
        assert leaked(text) == ["/srv/project/.env"], text
