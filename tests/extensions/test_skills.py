import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.extensions.sessions import commanded, sent
from tests.fakes.simulated import Place, Simulated
from toolwire import config
from toolwire.agent.events import AgentEvent, Noticed, reader_of
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.extensions.front_matter import split_front
from toolwire.extensions.skills import Skill, prompt_section
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say

PUBLIC = """\
---
name: brand-guidelines
description: Applies the company's official brand colors and typography to any sort of artifact \
that may benefit from it. Use it when brand colors or style guidelines apply.
license: Complete terms in LICENSE.txt
---

# Brand styling

## Colors
- Dark: `#141413`
See `references/fonts.md`.
"""
DONE = Reply(pieces=(Say("Done."),))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def skill(folder: Path, text: str = PUBLIC, name: str = "brand-guidelines") -> Path:
    path = folder / name
    (path / "references").mkdir(parents=True)
    (path / "SKILL.md").write_text(text)
    (path / "references" / "fonts.md").write_text("Poppins\n")
    return path


def activates(name: str = "brand-guidelines") -> Reply:
    return Reply(pieces=(Call.of("activate_skill", name=name),))


class Worked(msgspec.Struct, frozen=True):
    bodies: list[dict[str, Any]]
    notices: list[str]
    asked: list[Confirmation]

    @property
    def results(self) -> list[str]:
        return [one["content"] for one in self.bodies[-1]["messages"] if one["role"] == "tool"]

    @property
    def systems(self) -> list[str]:
        return [one["messages"][0]["content"] for one in self.bodies]


def worked(
    place: Place,
    replies: Sequence[Reply],
    *,
    prompts: Sequence[str] = ("go",),
    text: str = "",
    mode: Mode | None = None,
    user: bool = False,
    modes: Sequence[Mode | None] = (),
) -> Worked:
    """A session of the coding agent in this process."""
    (place.home / "config.toml").write_text(text)
    environ = place.environ()
    settings = config.load(environ, place.work, trusted=True)
    notices: list[str] = []
    asked: list[Confirmation] = []

    async def receive(event: AgentEvent) -> None:
        if isinstance(event, Noticed):
            notices.append(event.message)

    async def approve(question: Confirmation) -> UserAnswer:
        asked.append(question)
        return UserAnswer(choice=Choice.ONCE)

    async def work(sim: Simulated) -> None:
        async with open_session(
            SessionOptions(upstream=read_upstream(sim.upstream()), kept=False, mode=mode),
            settings=settings,
            environ=environ,
            cwd=place.work,
            readers=(reader_of(receive),),
            approver=approve if user else None,
        ) as session:
            for number, prompt in enumerate(prompts):
                if number < len(modes) and (changed := modes[number]) is not None:
                    await session.set_mode(changed)
                await sent(session, prompt)

    with Simulated(replies) as sim:
        asyncio.run(work(sim))
        return Worked(sim.bodies, notices, asked)


def test_a_public_skill_works_unchanged_and_its_body_comes_on_activation(place: Place):
    folder = skill(place.root / ".claude" / "skills")
    reads = Call.of("read_file", absolute_path=str(folder / "references" / "fonts.md"))
    writes = Call.of("write_file", file_path=str(folder / "SKILL.md"), content="x")
    found = worked(
        place,
        [activates(), Reply(pieces=(reads, writes)), DONE],
        mode=Mode.DEFAULT,
    )
    system = found.systems[0]
    assert "<name>brand-guidelines</name>" in system
    assert "official brand colors and typography" in system
    assert "#141413" not in json.dumps(found.bodies[0])
    activated, read, written = found.results
    assert activated.startswith(
        '<activated_skill name="brand-guidelines">\n  <instructions>\n    # Brand styling\n\n'
    )
    assert "#141413" in activated
    assert "<available_resources>" in activated
    assert "└───fonts.md" in activated
    assert activated.endswith("\n  </available_resources>\n</activated_skill>")
    assert "Poppins" in read
    assert (folder / "SKILL.md").read_text() == PUBLIC
    assert written


def test_a_folder_of_a_skill_is_not_readable_before_it_is_activated(place: Place):
    folder = skill(place.root / ".claude" / "skills")
    reads = Call.of("read_file", absolute_path=str(folder / "references" / "fonts.md"))
    found = worked(place, [Reply(pieces=(reads,)), DONE])
    assert "must be within one of the workspace directories" in found.results[0]


def test_the_bytes_of_the_prompt_are_stable(place: Place):
    skill(place.root / ".claude" / "skills")
    found = worked(place, [activates(), DONE, DONE], prompts=("go", "again"))
    assert len(set(found.systems)) == 1
    assert len({json.dumps(one["tools"]) for one in found.bodies}) == 1


def test_of_two_skills_of_one_name_the_first_folder_wins(place: Place):
    other = PUBLIC.replace("Brand styling", "Mine")
    first = skill(place.work / ".agents" / "skills", other)
    second = skill(place.work / ".claude" / "skills")
    found = worked(place, [activates(), DONE], mode=Mode.YOLO)
    assert "# Mine" in found.results[0]
    assert f"the skill {second} is not used: {first} has the same name" in found.notices


def test_a_link_that_leads_out_of_the_folder_is_not_followed(place: Place):
    secret = place.root / "secret"
    secret.mkdir()
    (secret / "SKILL.md").write_text(PUBLIC.replace("brand-guidelines", "out"))
    (secret / "key.txt").write_text("hidden words\n")
    inside = skill(place.root / ".claude" / "skills")
    (inside / "more").symlink_to(secret)
    linked = place.root / ".claude" / "skills" / "out"
    linked.mkdir()
    (linked / "SKILL.md").symlink_to(secret / "SKILL.md")
    (place.work / ".agents" / "skills").mkdir(parents=True)
    (place.work / ".agents" / "skills" / "theirs").symlink_to(secret)
    reads = Call.of("read_file", absolute_path=str(inside / "more" / "key.txt"))
    found = worked(place, [activates(), Reply(pieces=(reads,)), DONE], mode=Mode.YOLO)
    assert "key.txt" not in found.results[0]
    assert "hidden words" not in found.results[1]
    assert "<name>out</name>" not in found.systems[0]
    assert any("leads out of its folder" in words for words in found.notices)


def test_a_skill_of_a_project_is_asked_about_once_and_after_a_change(place: Place):
    folder = skill(place.work / ".agents" / "skills")
    denied = worked(place, [activates(), DONE])
    assert denied.results[0].startswith("Tool execution denied by policy.")
    first = worked(place, [activates(), DONE], user=True)
    again = worked(place, [activates(), DONE], user=True)
    alone = worked(place, [activates(), DONE])
    (folder / "SKILL.md").write_text(PUBLIC + "More.\n")
    changed = worked(place, [activates(), DONE], user=True)
    assert [len(one.asked) for one in (first, again, changed)] == [1, 0, 1]
    assert str(folder) in first.asked[0].reason
    assert "#141413" in alone.results[0]


@pytest.mark.parametrize(
    ("begun", "then", "questions"), [(Mode.YOLO, Mode.DEFAULT, 1), (Mode.DEFAULT, Mode.YOLO, 0)]
)
def test_the_mode_in_force_decides_whether_a_skill_is_asked_about(
    place: Place, begun: Mode, then: Mode, questions: int
):
    skill(place.work / ".agents" / "skills")
    found = worked(place, [activates(), DONE], user=True, mode=begun, modes=(then,))
    assert len(found.asked) == questions
    assert "#141413" in found.results[0]


def test_a_skill_of_a_project_is_allowed_by_name(place: Place):
    skill(place.work / ".agents" / "skills")
    found = worked(place, [activates(), DONE], text='[tools]\nallowed = ["activate_skill"]\n')
    assert "#141413" in found.results[0]


def test_settings_leave_skills_out_and_add_folders(place: Place):
    skill(place.root / ".claude" / "skills")
    more = PUBLIC.replace("name: brand-guidelines", "name: more")
    skill(place.root / "own", more, "more")
    text = f'[skills]\nexclude = ["brand-guidelines"]\npaths = ["{place.root}/own"]\n'
    found = worked(place, [DONE], text=text)
    assert "<name>more</name>" in found.systems[0]
    assert "<name>brand-guidelines</name>" not in found.systems[0]
    off = worked(place, [DONE], text="[skills]\nenabled = false\n")
    assert "available_skills" not in off.systems[0]
    assert "activate_skill" not in json.dumps(off.bodies[0]["tools"])


def test_a_bad_front_matter_is_a_warning(place: Place):
    folder = place.root / ".claude" / "skills"
    skill(folder)
    skill(folder, "no front matter\n", "plain")
    skill(folder, "---\nname: Bad Name\ndescription: x\n---\n", "bad")
    skill(folder, '---\nname: "open\ndescription: x\n---\n', "open")
    found = worked(place, [DONE])
    assert "<name>brand-guidelines</name>" in found.systems[0]
    assert len([words for words in found.notices if "is not used" in words]) == 3


def test_descriptions_take_at_most_two_percent_of_the_window():
    skills = [
        Skill(name=f"s-{n}", description="x" * 900, folder=Path("/s"), origin="user")
        for n in range(40)
    ]
    small = prompt_section(skills, 32_000)
    assert "<description>" not in small
    assert small.count("<name>") > 10
    for window in (8_000, 32_000, 200_000, 1_000_000):
        assert len(prompt_section(skills, window)) <= max(0.02 * window * 4, 600)
    assert prompt_section(skills, 1_000_000).count("<description>") == 40


def test_the_commands_begin_show_and_list_skills(place: Place):
    made = commanded(place, "skills", "new", "my-skill", "--user")
    assert (made.code, made.out.strip()) == (
        0,
        str(place.home / "skills" / "my-skill" / "SKILL.md"),
    )
    assert commanded(place, "skills", "new", "my-skill", "--user").code == 1
    assert commanded(place, "skills", "new", "My Skill").code == 1
    [row] = json.loads(commanded(place, "skills", "list", "--json").out)
    assert (row["name"], row["origin"], row["approved"]) == ("my-skill", "user", True)
    shown = commanded(place, "skills", "show", "my-skill").out
    assert "# My skill" in shown
    wrong = commanded(place, "skills", "show", "my-skil")
    assert (wrong.code, 'did you mean "my-skill"' in wrong.err) == (1, True)


FRONTS = [
    "name: a\ndescription: b c",
    "name: \"a: b\"\ndescription: 'it''s'",
    "description: >\n  folded\n  text\n\n  more\nname: a",
    "description: |\n  kept\n  lines\nname: a",
    "description: >-\n  folded\n  text\nname: a",
    "description: plain text\n  goes on\nname: a",
    "allowed-tools: [Read, 'Bash(git:*)', \"x, y\"]\nname: a",
    "allowed-tools:\n  - Read\n  - Write\nname: a",
    "allowed-tools:\n- Read\n- Write\nname: a",
    "metadata:\n  author: me\n  version: '1.0'\nname: a",
    "# comment\nname: a # why\n\ndescription: b#c",
    "argument-hint: x\nempty:\nname: a",
]


@pytest.mark.parametrize("front", FRONTS)
def test_front_matter_is_read_as_yaml_reads_it(front: str):
    expected = {
        key: "" if value is None else value.rstrip("\n") if isinstance(value, str) else value
        for key, value in yaml.safe_load(front).items()
    }
    assert split_front(f"---\n{front}\n---\nbody\n") == (expected, "body\n")
    assert split_front(f"---\n{front}\n---\nbody".replace("\n", "\r\n")) == (expected, "body")


def test_skills_of_a_folder_that_is_not_trusted_are_named_and_not_listed(place: Place):
    assert place.toolwire("skills", "new", "demo").code == 0
    listed = place.toolwire("skills", "list", "--json")
    assert listed.out == "[]\n"
    assert "skills of .agents/skills are not used" in listed.err
    assert "toolwire config trust" in listed.err
