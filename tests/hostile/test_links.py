import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.checkouts import SECRET, Checkout
from tests.tools.workspaces import git, write
from toolwire.app import open_toolbox
from toolwire.config import Settings
from toolwire.context.mentions import user_message
from toolwire.messages import Text
from toolwire.policy import Mode
from toolwire.tools.search.grep import ripgrep

WAYS = ["git", "own", *(["rg"] if ripgrep({}) else [])]
NAMES = ("file.txt", "folder/secret.txt", "chain.txt", "folder/new.txt", "dangling.txt", "up/x.txt")


@pytest.fixture(params=["checkout", "archive"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Checkout:
    """A project whose links lead out of it, as a branch or an archive brings them."""
    place = Checkout(tmp_path)
    outside = tmp_path / "outside"
    write(outside / "secret.txt", f"KEY={SECRET}\n")
    source = tmp_path / "source"
    source.mkdir()
    (source / "file.txt").symlink_to(outside / "secret.txt")
    (source / "folder").symlink_to(outside)
    (source / "chain.txt").symlink_to("file.txt")
    (source / "dangling.txt").symlink_to(outside / "made.txt")
    (source / "up").symlink_to("../../../../outside")
    (source / "loop").symlink_to("loop")
    write(source / "plain.txt", "KEY=plain\n")
    if request.param == "archive":
        archive = tmp_path / "a.tar"
        subprocess.run(["tar", "-C", source, "-cf", archive, "."], check=True)
        subprocess.run(["tar", "-C", place.root, "-xf", archive], check=True)
        git(place.root)
        return place
    git(source)
    me = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["add", "-A"], [*me, "commit", "-qm", "links"]):
        subprocess.run(["git", "-C", source, *command], check=True)
    place.root.rmdir()
    subprocess.run(["git", "clone", "-q", source, place.root], check=True)
    return place


def outside(place: Checkout) -> dict[str, str]:
    return {path.name: path.read_text() for path in (place.folder / "outside").iterdir()}


def test_no_tool_reads_through_a_link_that_leads_out(place: Checkout) -> None:
    root = str(place.root)
    calls: list[tuple[str, dict[str, Any]]] = []
    for name in NAMES:
        calls += [
            ("read_file", {"absolute_path": f"{root}/{name}"}),
            ("read_many_files", {"paths": [name]}),
            ("glob", {"pattern": "*", "path": f"{root}/{name}"}),
        ]
    for name in ("folder", "up", "loop"):
        calls += [
            ("list_directory", {"path": f"{root}/{name}"}),
            ("glob", {"pattern": f"{name}/**"}),
            ("glob", {"pattern": "**", "path": f"{root}/{name}"}),
            ("read_many_files", {"paths": [name]}),
            ("search_file_content", {"pattern": "KEY", "path": f"{root}/{name}"}),
        ]
    calls += [("read_many_files", {"paths": ["**/*"]}), ("glob", {"pattern": "**/*"})]
    calls += [("search_file_content", {"pattern": "KEY"})]
    calls += [("search_file_content", {"pattern": "KEY", "include": "folder/**"})]
    for tool, arguments in calls:
        for way in WAYS if tool == "search_file_content" else ["own"]:
            for mode in (Mode.DEFAULT, Mode.YOLO):
                said = place.call(tool, mode, settings={"search_with": way}, **arguments)
                assert SECRET not in said, (tool, arguments)
                assert "secret.txt" not in said.replace(str(arguments), "") or any(
                    "secret.txt" in str(value) for value in arguments.values()
                ), (tool, arguments, said)


def test_no_tool_writes_through_a_link_that_leads_out(place: Checkout) -> None:
    before = outside(place)
    for name in NAMES:
        path = str(place.root / name)
        edits = {"file_path": path, "instruction": "", "new_string": "x"}
        patches = [f"*** Add File: {name}\n+x", f"*** Delete File: {name}"]
        patches += [f"*** Update File: {name}\n-KEY={SECRET}\n+x"]
        patches += [f"*** Update File: plain.txt\n*** Move to: {name}\n-KEY=plain\n+x"]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("write_file", {"file_path": path, "content": "x"}),
            ("replace", {**edits, "old_string": f"KEY={SECRET}"}),
            ("replace", {**edits, "old_string": "KEY=something"}),
            ("replace", {**edits, "old_string": ""}),
            *(("apply_patch", {"input": f"*** Begin Patch\n{p}\n*** End Patch"}) for p in patches),
        ]
        for tool, arguments in calls:
            said = place.call(tool, Mode.YOLO, **arguments)
            shown = said.replace(str(arguments.get("old_string", "-")), "")
            assert SECRET not in shown.replace(str(arguments.get("input", "-")), ""), (tool, said)
            assert outside(place) == before, (tool, arguments)
    assert (place.root / "plain.txt").read_text() == "KEY=plain\n"


def test_no_mention_leads_out(place: Checkout) -> None:
    async def opened() -> Any:
        async with open_toolbox(Settings(), environ=place.environ, cwd=place.root) as shop:
            return shop.context

    context = asyncio.run(opened())
    for name in (*NAMES, "folder", "up", "folder/*", "**/*", ".", "loop"):
        said = user_message(f"see @{name}", context)
        sent = "".join(part.text for part in said.message.parts if isinstance(part, Text))
        assert SECRET not in sent, name


def test_a_folder_that_becomes_a_link_is_not_searched(tmp_path: Path) -> None:
    place = Checkout(tmp_path)
    git(place.root)
    place.put("sub/a.txt", "KEY=inside")
    write(tmp_path / "outside" / "a.txt", f"KEY={SECRET}")
    (place.root / "sub").rename(place.root / "was")
    (place.root / "sub").symlink_to(tmp_path / "outside")
    for way in WAYS:
        said = place.call("search_file_content", settings={"search_with": way}, pattern="KEY")
        assert SECRET not in said
        assert "was/a.txt" in said
