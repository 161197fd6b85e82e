"""A requested change, step by step: read, plan, change one file at a time, check, report."""

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from toolwire.embedded.small import edits, parsing
from toolwire.embedded.small.about import mentions, to_read
from toolwire.embedded.small.figures import together
from toolwire.embedded.small.past import RESULT_LIMIT, Ran, excerpt, listed
from toolwire.embedded.small.plan import checked
from toolwire.embedded.small.programs import (
    CODE,
    LIMITED,
    is_check,
    test_command,
    trial_command,
)
from toolwire.embedded.small.report import deeds, undone
from toolwire.embedded.small.steps import PlanStep, StepKind, command_for, plan_schema, read_plan
from toolwire.embedded.small.tools import KnownFiles, to_real
from toolwire.embedded.small.values import filled
from toolwire.request import JsonObject
from toolwire.wire.json_access import object_in

_MOST_TRIES = 3
"""Answers for one step; after them it is reported as not done."""
_MOST_WHOLE = 1000
"""Characters of a file that is rewritten as a whole after edits of its lines were wrong."""
_MOST_REPAIRS = 1
"""Further edits after a failed check."""
_LOST = 6
"""Lines that an edit may remove if the request does not speak of removing."""
_removes = re.compile(r"delet|remov|drop|take\b.*\bout|rid of|clean|shorten|strip", re.I).search
_value = re.compile(
    r"\"([^\"\n]{2,60})\"|'([^'\n]{2,60})'(?!\w)|`([^`\n]{2,60})`|(?<![\w.])(\d[\d.]+)\b"
)


class Calls(msgspec.Struct, frozen=True):
    """Calls to make now: the name and the arguments of each real tool."""

    calls: tuple[tuple[str, JsonObject], ...]


class Query(msgspec.Struct, frozen=True):
    """A question to the model, and the form of its answer."""

    words: str
    schema: JsonObject
    name: str


class Closing(msgspec.Struct, frozen=True):
    """The last words of the turn."""

    words: str


Action: TypeAlias = Calls | Query | Closing


class Change:
    """One requested change; `next` and `answer` take turns until the closing words."""

    def __init__(self, words: str, *, other: bool = False) -> None:
        self.words = words
        self._other = other
        """Whether there are tools besides the built-in ones."""
        self._steps: list[PlanStep] = []
        self._planned = False
        self._alone = True
        """Whether the plan only reads and writes files."""
        self._at = 0
        self._tries = 0
        self._complaint = ""
        self._looked = False
        self._read: dict[str, str] = {}
        """Texts of files as the model saw them last."""
        self._ready: Calls | None = None
        self._settled = 0
        self._waiting = ""
        """What the open calls are for: `read`, `look`, `try`, `step` or `check`."""
        self._done: list[tuple[PlanStep, Ran]] = []
        self._failed: list[tuple[PlanStep, str]] = []
        self._check: Ran | None = None
        self._trial = ""
        """The command that showed the fault before anything was changed."""
        self._repairs = 0
        self._stopped = ""

    def next(self, ran: Sequence[Ran], project: KnownFiles, *, late: bool = False) -> Action:
        """What to do now, after all calls so far."""
        self._settle(ran[self._settled :])
        self._settled = len(ran)
        if (ready := self._ready) is not None:
            self._take()
            return ready
        if late and not self._stopped:
            self._stopped = "the time for one request is used up"
        if self._stopped:
            return Closing(self._report(project))
        if not self._planned:
            return self._before_plan(project)
        while self._at < len(self._steps):
            action = self._on_step(self._steps[self._at], project)
            if action is not None:
                return action
            self._at += 1
            self._tries, self._complaint = 0, ""
        command = "" if self._check is not None else self._check_command(project)
        if command:
            return self._call("check", "run_shell_command", {"command": command})
        return Closing(self._report(project))

    @property
    def elsewhere(self) -> bool:
        """Whether the plan needs a tool besides the built-in ones."""
        return any(step.do is StepKind.OTHER for step in self._steps)

    def answer(self, text: str, project: KnownFiles) -> None:
        """Take in the answer to the last question."""
        if not self._planned:
            self._plan(text, project)
            return
        step = self._steps[self._at]
        found = object_in(text)
        if found is None:
            self._again("The answer was cut off; write less.")
        elif step.do is StepKind.CREATE:
            self._created(step, edits.written(step.path, found.get("text")), project)
        else:
            self._edited(step, found, project)

    def _settle(self, ran: Sequence[Ran]) -> None:
        waiting, self._waiting = self._waiting, ""
        if any(it.refused for it in ran) and waiting != "try":
            self._stopped = "it was not allowed"
        if not ran or waiting in ("", "read", "look", "try"):
            return
        last = ran[-1]
        if waiting == "check":
            self._check = last
            self._stopped = ""
            if not last.refused and not last.succeeded and self._repairs < _MOST_REPAIRS:
                self._repair(last)
            return
        step = self._steps[self._at]
        if last.succeeded:
            self._done.append((step, last))
            self._advance()
        elif last.refused:
            self._failed.append((step, "not allowed"))
        elif step.do in (StepKind.EDIT, StepKind.CREATE) and self._tries < _MOST_TRIES:
            self._again(last.result.text[:200])
        else:
            self._failed.append((step, excerpt(last.result.text.strip().partition("\n")[0])))
            self._advance()

    def _advance(self) -> None:
        self._at += 1
        self._tries, self._complaint = 0, ""

    def _before_plan(self, project: KnownFiles) -> Action:
        if not self._read:
            unread = [path for path in to_read(self.words, project) if project.text(path)]
            if unread:
                return self._reading(unread, project)
        if not self._trial and (command := trial_command(self.words, self._read, project)):
            self._trial = command
            return self._call("try", "run_shell_command", {"command": command})
        words = f"\n\nPlan for: {self.words}"
        look = not self._looked and not self._trial
        return Query(words, plan_schema(project, look=look, other=self._other), "plan")

    def _reading(self, paths: Sequence[str], project: KnownFiles) -> Calls:
        self._waiting = "read"
        for path in paths:
            self._read[path] = project.text(path) or ""
        return Calls(
            tuple(("read_file", to_real("read_file", {"path": path}, project)) for path in paths)
        )

    def _plan(self, text: str, project: KnownFiles) -> None:
        try:
            steps = read_plan(text).steps
        except (msgspec.DecodeError, UnicodeError):
            steps = []
        self._planned = True
        self._steps = [*checked(steps, self.words, project)]
        self._alone = not any(it.do in _HARD for it in steps)
        if not any(it.do is StepKind.LOOK or it.do not in _LOOKING for it in self._steps):
            self._steps += self._faulty(project)
        self._at = 0

    def _faulty(self, project: KnownFiles) -> list[PlanStep]:
        """The step for a plan without any: the code that was read because of a fault."""
        code = [
            path
            for path in self._read
            if path.endswith(CODE) and not is_check(path, project.text(path) or "")
        ]
        if not self._trial or not code:
            return []
        return [PlanStep(do=StepKind.EDIT, path=code[0], what=self.words)]

    def _on_step(self, step: PlanStep, project: KnownFiles) -> Action | None:
        match step.do:
            case StepKind.LOOK:
                self._looked, self._planned = True, False
                return self._call("look", "search_file_content", {"pattern": step.what}, project)
            case StepKind.READ:
                unread = step.path not in self._read and project.text(step.path)
                return self._reading([step.path], project) if unread else None
            case StepKind.SUBSTITUTE:
                text = project.text(step.path)
                if text is None:
                    return self._give_up(step, "it cannot be read")
                if step.path not in self._read:
                    return self._reading([step.path], project)
                after = edits.substitute(text, step.old, step.new)
                if after == text:
                    return self._give_up(step, f"{step.old} does not occur in it")
                self._ready = _replacement(step.path, text, after, project)
                return self._take()
            case StepKind.EDIT | StepKind.CREATE:
                return self._asked(step, project)
            case StepKind.OTHER:
                return None
            case StepKind.MOVE | StepKind.COPY if _exists(step.to, project):
                return self._give_up(step, f"{step.to} exists already")
            case _:
                return self._call("step", "run_shell_command", {"command": command_for(step)})

    def _give_up(self, step: PlanStep, why: str) -> None:
        self._failed.append((step, why))

    def _asked(self, step: PlanStep, project: KnownFiles) -> Action | None:
        if self._ready is not None:
            return self._take()
        if self._tries >= _MOST_TRIES:
            return self._give_up(step, self._complaint)
        count = f"Step {self._at + 1} of {len(self._steps)}"
        what = self._what(step)
        if step.do is StepKind.CREATE and (text := self._from_template(project)):
            self._created(step, text, project)
            return self._take()
        if step.do is StepKind.CREATE:
            sums = together({path: self._read[path] for path in self._read})
            words = f"\n\n{count}, new file {step.path}: {what}\n{sums}{self._complaint}"
            return Query(f"{words}The text of {step.path}:", edits.text_schema(step.path), "text")
        text = project.text(step.path)
        if text is None:
            return self._give_up(step, "it is not a text file, or too long")
        if step.path not in self._read:
            return self._reading([step.path], project)
        begin, end = edits.window(text, f"{what} {self._complaint}", RESULT_LIMIT)
        part = "\n".join(text.split("\n")[begin:end])
        now = ""
        if len(part) < len(text):
            now = f"{step.path}, lines {begin + 1} to {end}:\n{part}\n"
        elif text != self._read[step.path]:
            now = f"{step.path} is now:\n{text}\n"
        self._read[step.path] = text
        words = f"\n\n{now}{count}, in {step.path}: {what}\n{self._complaint}"
        if self._tries == _MOST_TRIES - 1 and len(text) <= _MOST_WHOLE:
            # The same question led to the same answer before.
            form = edits.text_schema(step.path)
            return Query(f"{words}The new text of the whole file {step.path}:", form, "change")
        form = edits.change_schema(text, begin, end)
        return Query(f"{words}The change of {step.path}:", form, "change")

    def _from_template(self, project: KnownFiles) -> str:
        """The text of a new file, where the request fills in another one."""
        writes = [it for it in self._steps if it.do is StepKind.CREATE]
        named = [it.path for it in mentions(self.words, project)[0]]
        if len(writes) != 1 or self._tries:
            return ""
        return next(filter(None, (filled(project.text(it) or "", self.words) for it in named)), "")

    def _what(self, step: PlanStep) -> str:
        """What a step is for: the request itself where no other step changes a file."""
        writing = [it for it in self._steps if it.do in (StepKind.EDIT, StepKind.CREATE)]
        alone = len(writing) == 1 and self._alone and not self._repairs
        return self.words if alone else step.what

    def _created(self, step: PlanStep, text: str, project: KnownFiles) -> None:
        wrong = parsing.problem(step.path, text) if text.strip() else "it is empty"
        if wrong:
            self._again(f"{step.path} cannot be written like that: {wrong}.")
            return
        self._ready = Calls(
            (("write_file", to_real("write_file", {"path": step.path, "content": text}, project)),)
        )

    def _edited(self, step: PlanStep, found: JsonObject, project: KnownFiles) -> None:
        text = project.text(step.path) or ""
        if "nothing" in found and len(self._steps) == 1 and not self._tries:
            self._again(f"The request needs a change of {step.path}.")
            return
        if "nothing" in found:
            self._tries = _MOST_TRIES
            self._complaint = "no line of it has to change"
            return
        after = edits.changed(text, found)
        if "text" in found:
            after = edits.written(step.path, found["text"])
        wrong = self._wrong(step, text, after)
        if not wrong and not self._tries and (line := edits.misplaced(text, found)):
            wrong = f"That does not replace the line that it resembles: {line.strip()}."
        if wrong:
            self._again(wrong)
            return
        self._ready = _replacement(step.path, text, after, project)

    def _wrong(self, step: PlanStep, text: str, after: str) -> str:
        if after == text:
            return "That would change nothing. "
        broken = parsing.damage(step.path, text, after)
        if broken:
            return f"With that, {step.path} would be wrong: {broken}."
        lost = len(text.splitlines()) - len(after.splitlines())
        if lost > _LOST and not _removes(f"{self.words} {step.what}"):
            return f"That would remove {lost} lines."
        if len(self._steps) == 1 and self._tries < _MOST_TRIES - 1:
            known = "".join(self._read.values())
            for value in map(_literal, _value.finditer(self.words)):
                if value not in known and value not in after and value not in step.path:
                    return f"{value} is missing in it."
        return ""

    def _take(self) -> Calls | None:
        ready, self._ready = self._ready, None
        self._waiting = "step"
        return ready

    def _again(self, complaint: str) -> None:
        self._tries += 1
        self._complaint = f"{complaint} Write it differently.\n"

    def _call(
        self, waiting: str, name: str, arguments: JsonObject, project: KnownFiles | None = None
    ) -> Calls:
        self._waiting = waiting
        if project is not None:
            arguments = to_real(name, arguments, project)
        return Calls(((name, arguments),))

    def _changed(self) -> list[str]:
        kinds = (StepKind.EDIT, StepKind.SUBSTITUTE, StepKind.CREATE)
        return [*dict.fromkeys(step.path for step, _ in self._done if step.do in kinds)]

    def _check_command(self, project: KnownFiles) -> str:
        """The command that checks changed code: the one that failed, or its test; may be empty."""
        changed = [path for path in self._changed() if path.endswith(CODE)]
        return (
            self._trial if self._trial and changed else test_command(self.words, changed, project)
        )

    def _repair(self, failed: Ran) -> None:
        """Plan another edit after a failed check."""
        changed = [path for path in self._changed() if path.endswith(CODE)]
        if not changed:
            return
        self._repairs += 1
        self._check = None
        what = f"the check still fails: {excerpt(failed.output)}"
        blamed = [path for path in changed if f"{path}" in failed.output]
        self._steps.append(PlanStep(do=StepKind.EDIT, path=[*changed[:1], *blamed][-1], what=what))

    def _report(self, project: KnownFiles) -> str:
        """The closing words: what the calls did, what is left, what was checked."""
        lines = [*deeds(self._done)]
        failed = [undone(step, why) for step, why in self._failed]
        known = [it for it, _ in self._failed]
        open_steps = [
            it for it in self._steps[self._at :] if it not in known and it.do not in _LOOKING
        ]
        if self._stopped:
            failed += [undone(step, self._stopped) for step in open_steps]
        if not self._done:
            absent = [it.path for it in mentions(self.words, project)[1]]
            missing = f" There is no {listed(absent)}." if absent and not failed else ""
            lines.append(f"Nothing was changed.{missing}")
            if self._stopped and not failed:
                lines.append(f"I stopped: {self._stopped}.")
        lines += failed
        lines += self._checked_line()
        return " ".join(lines)

    def _checked_line(self) -> list[str]:
        if self._check is None:
            code = any(path.endswith((".py", ".js", ".sh", ".ts")) for path in self._changed())
            return ["No test was run."] if code else []
        command = str((object_in(self._check.call.arguments) or {}).get("command", ""))
        command = command.removeprefix(LIMITED)
        if self._check.refused:
            return [f"`{command}` was not run: it was not allowed."]
        if self._check.succeeded:
            return [f"`{command}` ran without an error."]
        return [f"`{command}` still fails: {excerpt(self._check.output)}"]


def _exists(path: str, project: KnownFiles) -> bool:
    return path in project.files or project.text(path) is not None


def _replacement(path: str, text: str, after: str, project: KnownFiles) -> Calls:
    old, new = edits.span(text, after)
    arguments: JsonObject = {"path": path, "old": old, "new": new}
    return Calls((("replace", to_real("replace", arguments, project, exact=True)),))


def _literal(found: re.Match[str]) -> str:
    return next(filter(None, found.groups()), "").rstrip(".")


_HARD = (StepKind.DELETE, StepKind.MOVE, StepKind.COPY, StepKind.FOLDER)
_LOOKING = (StepKind.READ, StepKind.LOOK, StepKind.OTHER)
