import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.checkouts import SECRET, Checkout
from tests.tools.workspaces import git
from toolwire.agent.questions import Choice
from toolwire.app import open_toolbox
from toolwire.config import Settings
from toolwire.context.mentions import user_message
from toolwire.messages import Text
from toolwire.policy import Mode
from toolwire.tools.search.grep import ripgrep

NAME = "vault/inner/one.txt"
WAYS = ["git", "own", *(["rg"] if ripgrep({}) else [])]


@pytest.fixture
def place(tmp_path: Path) -> Checkout:
    place = Checkout(tmp_path)
    git(place.root)
    place.put(NAME, f"KEY={SECRET}\n")
    place.put("open.txt", "KEY=open\n")
    (place.root / "alias").symlink_to("vault")
    return place


def reads(place: Checkout) -> list[tuple[str, dict[str, Any]]]:
    """Every way to come across the file without naming it, and some that name it."""
    root = str(place.root)
    searches: list[dict[str, Any]] = [
        {"pattern": "KEY"},
        {"pattern": "KEY", "path": root},
        {"pattern": "KEY", "path": f"{root}/vault"},
        {"pattern": "KEY", "path": f"{root}/alias/inner"},
        {"pattern": "KEY", "include": "*.txt"},
        {"pattern": "KEY", "include": NAME},
    ]
    patterns = ["**/*", "**/one.txt", "vault", "vault/", NAME, "alias/inner/*", "v*/*/*.txt"]
    many = [{"paths": [one]} for one in (*patterns, f"alias/{NAME[6:]}", f"{root}/{NAME}")]
    many += [{"paths": ["nothing"], "include": [one]} for one in patterns]
    many += [{"paths": ["**"], "useDefaultExcludes": False}]
    globs = [{"pattern": one} for one in (*patterns, "**/*.TXT")]
    globs += [{"pattern": "**/*", "path": f"{root}/{one}"} for one in ("vault", "alias/inner")]
    lists = [{"path": f"{root}/{one}"} for one in ("vault/inner", "alias/inner")]
    files = [{"absolute_path": f"{root}/{one}"} for one in (NAME, f"alias/{NAME[6:]}")]
    edits = [
        {"file_path": f"{root}/{NAME}", "instruction": "", "old_string": old, "new_string": "x"}
        for old in ("KEY", "KEY=something else", "")
    ]
    patch = f"*** Begin Patch\n*** Update File: {NAME}\n-KEY=other\n+x\n*** End Patch"
    return [
        *(("search_file_content", one) for one in searches),
        *(("read_many_files", one) for one in many),
        *(("glob", one) for one in globs),
        *(("list_directory", one) for one in lists),
        *(("read_file", one) for one in files),
        *(("replace", one) for one in edits),
        ("write_file", {"file_path": f"{root}/{NAME}", "content": "x"}),
        ("apply_patch", {"input": patch}),
    ]


RULES = [
    {"path": "vault/**"},
    {"path": "vault"},
    {"path": "vault/"},
    {"path": "alias"},
    {"path": "VAULT/**"},
    {"path": "**/one.txt"},
    {"tool": "read_file", "path": "vault/**"},
    {"tool": "read_many_files", "path": "vault/**"},
    {"tool": "search_*", "path": NAME},
    {"effect": "read", "path": "vault/inner"},
]


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.YOLO])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_denied_path_is_denied_to_every_tool(
    rule: dict[str, str], mode: Mode, place: Checkout
) -> None:
    place.rule(decision="deny", **rule)
    for tool, arguments in reads(place):
        for way in WAYS if tool == "search_file_content" else [""]:
            settings = {"search_with": way} if way else {}
            said = place.call(tool, mode, settings=settings, **arguments)
            assert SECRET not in said, (tool, arguments, said)
            if "inner/one.txt" not in str(arguments):
                assert "one.txt" not in said.replace('"**/one.txt"', ""), (tool, arguments, said)
    assert (place.root / NAME).read_text() == f"KEY={SECRET}\n"


def test_what_was_left_out_is_counted_in_one_line(place: Checkout) -> None:
    place.rule(decision="deny", path="vault/**")
    (place.root / "alias").unlink()
    place.put(".env", f"KEY={SECRET}")
    line = (
        "1 protected (.env), 1 denied by a rule. Name one in read_file, which asks, if you need it."
    )
    assert place.call("search_file_content", pattern="KEY").splitlines()[-1] == (
        f"Not searched: {line}"
    )
    many = place.call("read_many_files", paths=["**/*", ".*"], useDefaultExcludes=False)
    assert f"Left out: {line}" in many.splitlines()
    found = place.call("glob", pattern="**/*.txt")
    assert found.splitlines()[-1] == "Left out: 1 denied by a rule."
    listed = place.call("list_directory", path=str(place.root))
    assert listed.splitlines()[-1] == "Left out: 1 denied by a rule."


@pytest.mark.parametrize("way", WAYS)
def test_a_search_does_not_tell_whether_a_hidden_file_has_the_text(
    way: str, place: Checkout
) -> None:
    place.rule(decision="deny", path="vault/**")
    place.put("server.pem", SECRET)
    answers = {
        place.call("search_file_content", settings={"search_with": way}, pattern=pattern).replace(
            pattern, ""
        )
        for pattern in (SECRET, "canary-0000")
    }
    assert len(answers) == 1


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_mentions_do_not_go_round_a_rule(decision: str, place: Checkout) -> None:
    place.rule(decision=decision, path="vault/**")
    place.put("server.pem", SECRET)

    def sent(prompt: str, piped: str = "") -> str:
        said = user_message(prompt, context, piped=piped)
        return "".join(part.text for part in said.message.parts if isinstance(part, Text))

    async def opened() -> Any:
        async with open_toolbox(Settings(), environ=place.environ, cwd=place.root) as shop:
            return shop.context

    context = asyncio.run(opened())
    for prompt in ("@vault", "@.", "@**/*.txt", "@vault/*/*", "@alias", "@alias/inner", "@**/*"):
        assert SECRET not in sent(prompt), prompt
    for piped in (f"@{NAME}", "@alias/inner/one.txt", "@server.pem"):
        assert SECRET not in sent("", piped), piped
    # Who types the name of a file has said yes to a question about it, not to a denied one.
    assert (SECRET in sent(f"@{NAME}")) is (decision == "ask")
    assert SECRET in sent("@server.pem")


def test_a_rule_that_asks_leaves_out_what_was_not_named(place: Checkout) -> None:
    place.rule(decision="ask", path="vault/**")
    (place.root / "alias").unlink()
    calls: dict[str, dict[str, Any]] = {
        "search_file_content": {"pattern": "KEY"},
        "read_many_files": {"paths": ["**/*"]},
        "glob": {"pattern": "**/*"},
    }
    for tool, arguments in calls.items():
        said = place.call(tool, choice=Choice.ONCE, **arguments)
        assert SECRET not in said
        assert "1 that a rule asks about" in said
    assert place.asked == []
    said = place.call("read_many_files", choice=Choice.ONCE, paths=[NAME])
    assert SECRET in said
    assert len(place.asked) == 1


def test_a_rule_against_writing_one_way_is_against_every_way(place: Checkout) -> None:
    place.rule(decision="deny", tool="write_file", path="vault/**")
    for tool, arguments in reads(place):
        if tool in ("replace", "write_file", "apply_patch"):
            said = place.call(tool, Mode.YOLO, **arguments)
            assert said.startswith("Tool execution denied by policy."), tool
    assert SECRET in place.call("read_file", absolute_path=str(place.root / NAME))
