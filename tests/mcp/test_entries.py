from pathlib import Path

import pytest

from toolwire.errors import BadInput
from toolwire.mcp.client import Lists
from toolwire.mcp.entry import (
    Unset,
    cache_key,
    definition,
    expanded,
    project_entry,
    read_entry,
    shown,
)
from toolwire.mcp.names import aliases, cleaned, offered_name, prefixes
from toolwire.mcp.projects import Approvals, combined, read_file, read_json
from toolwire.mcp.remembered import Memory, Remembered
from toolwire.storage.private_files import ApprovalStore


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "give either command or url"),
        ({"command": "x", "url": "http://h"}, "give either command or url"),
        ({"command": "x", "transport": "http"}, "needs a url"),
        ({"url": "http://h", "transport": "stdio"}, "needs a command"),
        ({"command": "x", "timeout": 0}, "above 0"),
        ({"command": "x", "colour": 1}, "colour"),
        ({"command": "x", "args": "y"}, "args"),
    ],
)
def test_a_bad_entry_is_named(table: dict[str, object], words: str):
    with pytest.raises(BadInput, match=words) as caught:
        read_entry("a", table, "the file")
    assert "mcp_servers.a in the file" in str(caught.value)


def test_variables_are_filled_in_where_they_are_set():
    table = {"command": "$RUN", "args": ["${A}", "${B:-b}", "$5"], "env": {"T": "x$A"}}
    entry = expanded(read_entry("a", table, ""), {"RUN": "npx", "A": "1"})
    assert (entry.command, entry.args, entry.env) == ("npx", ("1", "b", "$5"), {"T": "x1"})
    with pytest.raises(Unset, match="the variable RUN is not set"):
        expanded(read_entry("a", table, ""), {"A": "1"})


def test_an_approval_is_bound_to_the_whole_definition_the_cache_to_what_decides_lists():
    first = read_entry("a", {"command": "x", "env": {"T": "1"}}, "")
    second = read_entry("a", {"command": "x", "env": {"T": "2"}}, "")
    assert definition(first) != definition(second)
    assert cache_key(first) == cache_key(second)


def test_secrets_of_an_entry_are_not_shown():
    table = {"url": "http://h", "headers": {"A": "Bearer abc", "B": "$TOKEN"}}
    assert shown(read_entry("a", table, ""))["headers"] == {"A": "[hidden]", "B": "$TOKEN"}


def test_names_are_cleaned_and_never_clash():
    long = "weird name/with*chars and a very long tail that goes past sixty three characters"
    assert cleaned(long) == "weird_name_with_chars_and_a____goes_past_sixty_three_characters"
    assert len(cleaned(long)) == 63
    assert offered_name("fs", "read_file", []) == "read_file"
    assert offered_name("fs", "read_file", ["read_file"]) == "fs__read_file"
    assert offered_name("fs", "a", ["a", "fs__a"]) == "fs__a_2"
    assert aliases("fs", "a") == ("fs__a", "mcp__fs__a", "mcp_fs_a")


def test_mcp_json_is_read_entry_by_entry(tmp_path: Path):
    (tmp_path / ".mcp.json").write_text(
        '{"mcpServers": {"a b": {"command": "x"}, "c": 7, "d": {"type": "sse", "url": "http://h"}}}'
    )
    notices: list[str] = []
    found = read_file(tmp_path, notices.append)
    assert list(found) == ["a_b", "d"]
    assert found["d"].kind == "sse"
    assert len(notices) == 2
    (tmp_path / ".mcp.json").write_text("{")
    assert read_file(tmp_path, notices.append) == {}
    with pytest.raises(BadInput, match="mcpServers"):
        read_json("{}", "x", notices.append)


def test_a_project_may_not_trust_itself():
    with pytest.raises(BadInput, match="may not set trust"):
        project_entry("a", {"command": "x", "trust": True}, "the project")


def test_a_server_of_a_project_starts_only_after_a_yes_to_exactly_this(tmp_path: Path):
    approvals = Approvals(ApprovalStore(tmp_path / "approvals.json"))
    first = read_entry("a", {"command": "x", "env": {"T": "1"}}, "")
    changed = read_entry("a", {"command": "x", "env": {"T": "2"}}, "")
    project = tmp_path / "project"
    project.mkdir()
    assert approvals.answer(project, "a", first) is None
    approvals.keep(project, "a", first, allowed=True)
    assert approvals.answer(project, "a", first) is True
    assert approvals.answer(project, "a", changed) is None
    assert approvals.answer(tmp_path, "a", first) is None
    notices: list[str] = []
    own = {"a": changed}
    found = combined(own, {"a": (first, ".mcp.json")}, approvals, project, notices.append)
    assert found["a"].origin == "user"
    assert "is ignored" in notices[0]
    found = combined({}, {"a": (changed, ".mcp.json")}, approvals, project, notices.append)
    assert found["a"].approved is False


@pytest.mark.parametrize("name", ["one__echo", "mcp__one__echo", "mcp_one_echo"])
def test_a_tool_that_calls_itself_by_another_servers_name_gets_its_own(name: str):
    assert offered_name("evil", name, [], prefixes(["one"])) == f"evil__{name}"
    assert offered_name("evil", "echo", ["echo"], prefixes(["one"])) == "evil__echo"


def test_what_a_server_offers_where_a_user_can_be_asked_is_remembered_apart(tmp_path: Path):
    entry = read_entry("a", {"command": "x"})
    plain, asking = Memory(tmp_path), Memory(tmp_path, asking=True)
    plain.keep(entry, Remembered(lists=Lists(), at=1.0))
    assert asking.find(entry) == plain.find(entry)
    asking.keep(entry, Remembered(lists=Lists(), at=2.0))
    found = (plain.find(entry), asking.find(entry))
    assert [each.at for each in found if each is not None] == [1.0, 2.0]
