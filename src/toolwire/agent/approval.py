"""Approval of calls: the policy's ruling and, if it asks, the user's answer."""

import asyncio
import builtins
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from toolwire.agent.admission import CallState, guarded
from toolwire.agent.events import ApprovalOutcome, Emit, ToolAsked, ToolDecided
from toolwire.agent.hook_chain import NO_HOOKS, NO_OPINION, HookChain, Opinion
from toolwire.agent.hooks import Ask, CallDecision, Deny, HookedCall, Hooks
from toolwire.agent.questions import (
    Approver,
    Choice,
    Confirmation,
    Details,
    EditDetails,
    Editor,
    ExecDetails,
    InfoDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.messages import ToolCall
from toolwire.request import JsonObject
from toolwire.tools.files import edit
from toolwire.tools.files.edit import diff_of
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.spec import Effect, Permit, Tool, ToolContext
from toolwire.wire.json_access import dump

NOT_ALLOWED = "[Operation Cancelled] Reason: User did not allow tool call"
DENIED = "Tool execution denied by policy."
NO_USER = "Tool execution needs approval, and no user is present to give it."

_SCOPES = (Choice.SESSION, Choice.ALWAYS, Choice.EVERYWHERE, Choice.SERVER)
_log = logging.getLogger(__name__)


class Ruled(Protocol):
    """The part of a ruling that the scheduler reads."""

    @property
    def decision(self) -> str:
        """`allow`, `deny` or `ask`."""
        ...

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        ...


class Remembered(Protocol):
    """The part of a rule that a question shows."""

    @property
    def scope(self) -> str:
        """What it would allow."""
        ...


Policy: TypeAlias = Callable[[ToolCall, Effect, tuple[Path, ...], JsonObject], Ruled]
"""Rules on a call, given its effect, the paths it touches, and its arguments, parsed."""
Remember: TypeAlias = Callable[[ToolCall, Choice], None]
"""Records an approval that is valid for more than one call."""


Roots: TypeAlias = Callable[[str], tuple[str, ...]]
"""Programs that a command would start."""


def first_word(command: str) -> tuple[str, ...]:
    """The first word of a simple command; the policy's shell parser is more precise."""
    return tuple(command.split()[:1])


class _Ask(msgspec.Struct, frozen=True):
    reason: str
    decision: str = "ask"
    approved: Permit | None = None


class _Allowed(msgspec.Struct, frozen=True):
    reason: str
    permit: Permit | None
    decision: str = "allow"


def no_memory(call: ToolCall, choice: Choice) -> None:
    """Discards the approval: it is valid once only."""
    del call, choice


def _permit(ruling: Ruled, name: str) -> Permit | None:
    """The permit of a command, if the policy's ruling contains one."""
    return getattr(ruling, name, None)


class Denial(msgspec.Struct, frozen=True):
    """A call that may not run, and the result for the model."""

    text: str
    type: str


class Approval:
    """Decides on calls, with one question to the user at a time."""

    def __init__(
        self,
        policy: Policy,
        *,
        context: ToolContext,
        emit: Emit,
        approver: Approver | None,
        editor: Editor | None,
        remember: Remember = no_memory,
        roots: Roots = first_word,
        hooks: HookChain = NO_HOOKS,
    ) -> None:
        self.policy = policy
        self._hooks = hooks
        self._context = context
        self._emit = emit
        self.approver = approver
        self._editor = editor
        self.remember = remember
        self._roots = roots
        self.asking = asyncio.Lock()
        """Held while the user is asked anything."""

    def _ruling(self, work: CallState, tool: Tool, opinion: Opinion = NO_OPINION) -> Ruled:
        """The policy's ruling; a policy that fails means ask, never allow."""
        try:
            places = tool.touches(work.arguments, self._context)
            # The calls of an agent are ruled on one by one; its start changes nothing.
            effect = Effect.READ if tool.delegates else tool.effect
            ruling = self.policy(work.as_ruled(tool), effect, places, work.arguments)
        except Exception as error:
            _log.exception("the policy failed on %s", tool.name)
            return _Ask(f"the policy failed: {error}")
        return _with_opinion(ruling, opinion)

    async def refusal(self, work: CallState, tool: Tool) -> Denial | None:
        """Why the call may not run; None if it may.

        The order: the policy's denial, a hook's denial, a hook's demand for approval, the policy.
        What a hook changed is ruled on again.
        """
        ruling, opinion = self._ruling(work, tool), NO_OPINION
        if self._hooks and ruling.decision != "deny":
            opinion = await self._hooks.before(work, tool, self._context)
            if opinion.decision == "deny":
                await self._decide(work, ApprovalOutcome.REJECT, opinion.reason)
                return Denial(opinion.text, "denied_by_hook")
            ruling = self._ruling(work, tool, opinion)
            if ruling.decision == "ask":
                answer = await self._hooks.question(work, tool, self._context, ruling.reason)
                if answer.decision == "deny":
                    await self._decide(work, ApprovalOutcome.REJECT, answer.reason)
                    return Denial(answer.text, "denied_by_hook")
                if answer.decision == "allow":
                    opinion = answer
                ruling = self._ruling(work, tool, opinion)
        if ruling.decision == "allow":
            work.permit = _permit(ruling, "permit")
            await self._decide(work, ApprovalOutcome.AUTO_ACCEPT, ruling.reason)
            return None
        if ruling.decision == "deny":
            await self._decide(work, ApprovalOutcome.REJECT, ruling.reason)
            return Denial(f"{DENIED} {ruling.reason}".rstrip(), "denied_by_policy")
        if self.approver is None:
            await self._decide(work, ApprovalOutcome.REJECT, ruling.reason)
            if advice := self._hooks.advice:
                return Denial(f"{DENIED} {ruling.reason} {advice}", "denied_by_policy")
            return Denial(f"{NO_USER} {ruling.reason}".rstrip(), "needs_approval")
        async with self.asking:
            # An answer given while this call waited may have decided it.
            ruling = self._ruling(work, tool, opinion)
            if ruling.decision == "allow":
                work.permit = _permit(ruling, "permit")
                await self._decide(work, ApprovalOutcome.AUTO_ACCEPT, ruling.reason)
                return None
            work.permit = _permit(ruling, "approved")
            await self._hooks.notify(work, tool, self._context)
            return await self._confirmed(work, tool, ruling, self.approver)

    async def _confirmed(
        self, work: CallState, tool: Tool, ruling: Ruled, approver: Approver
    ) -> Denial | None:
        given = work.arguments
        proposals = await guarded(self._proposals(tool, given))
        own = False
        """Whether the user wrote the command."""
        while True:
            question = self._question(work, tool, ruling, proposals)
            await self._emit(ToolAsked(call_id=work.call.id, confirmation=question))
            shown = _as_edited(proposals, work.edited)
            answer = await approver(msgspec.structs.replace(question, proposals=shown))
            if answer.choice is Choice.CANCEL:
                return await self._refused(work, answer)
            if answer.content is not None and isinstance(question.details, ExecDetails):
                changed = await self._own_command(work, tool, answer.content)
                if isinstance(changed, Denial):
                    return changed
                ruling, own = changed, True
                if ruling.decision == "allow":
                    break
                continue
            await self._adopt(work, tool, given, proposals, answer)
            fresh = await guarded(self._proposals(tool, given))
            if fresh == proposals and answer.choice is not Choice.MODIFY:
                break
            # The file changed while the user was asked, or the user's own text has to be shown.
            proposals = fresh
        work.stat = stat_of(proposals, work.edited) if proposals else None
        if answer.choice in _SCOPES:
            self.remember(question.call, answer.choice)
        modified = own or work.edited is not None
        decision = ApprovalOutcome.MODIFY if modified else ApprovalOutcome.ACCEPT
        await self._decide(work, decision, ruling.reason, answer.choice)
        return None

    def _question(
        self, work: CallState, tool: Tool, ruling: Ruled, proposals: tuple[Proposal, ...]
    ) -> Confirmation:
        remembers: tuple[Remembered, ...] = getattr(ruling, "remembers", ())
        return Confirmation(
            call=work.as_ruled(tool),
            title=tool.title or tool.name,
            reason=ruling.reason,
            details=details_of(tool, work.arguments, proposals, work.edited, self._roots),
            remembers=tuple(rule.scope for rule in remembers),
        )

    async def _own_command(self, work: CallState, tool: Tool, command: str) -> Ruled | Denial:
        """The ruling on the user's own command in place of the model's."""
        work.give({**work.arguments, "command": command})
        complaint = tool.check(work.arguments, self._context)
        if complaint:
            await self._decide(work, ApprovalOutcome.REJECT, complaint)
            return Denial(complaint, "invalid_tool_params")
        opinion = NO_OPINION
        if self._hooks:
            opinion = await self._hooks.before(work, tool, self._context)
            if opinion.decision == "deny":
                await self._decide(work, ApprovalOutcome.REJECT, opinion.reason)
                return Denial(opinion.text, "denied_by_hook")
        ruling = self._ruling(work, tool, opinion)
        if ruling.decision == "deny":
            await self._decide(work, ApprovalOutcome.REJECT, ruling.reason)
            return Denial(f"{DENIED} {ruling.reason}".rstrip(), "denied_by_policy")
        work.permit = _permit(ruling, "permit" if ruling.decision == "allow" else "approved")
        return ruling

    async def _adopt(
        self,
        work: CallState,
        tool: Tool,
        given: JsonObject,
        proposals: tuple[Proposal, ...],
        answer: UserAnswer,
    ) -> None:
        """Apply text that the user changed, in place or in an editor."""
        content = answer.content
        if tool.adopt is None or len(proposals) != 1:
            return
        proposal = proposals[0]
        if content is None and answer.choice is Choice.MODIFY and self._editor is not None:
            shown = proposal.after if work.edited is None else work.edited
            content = await self._editor(msgspec.structs.replace(proposal, after=shown))
        if content is None:
            return
        work.edited = None if content == proposal.after else content
        unchanged = work.edited is None
        work.give(given if unchanged else tool.adopt(given, proposal, content))

    async def _proposals(self, tool: Tool, arguments: JsonObject) -> tuple[Proposal, ...]:
        if tool.preview is None:
            return ()
        return await asyncio.to_thread(tool.preview, arguments, self._context)

    async def _refused(self, work: CallState, answer: UserAnswer) -> Denial:
        await self._decide(work, ApprovalOutcome.REJECT, answer.feedback)
        text = f"{NOT_ALLOWED}\n{answer.feedback}" if answer.feedback else NOT_ALLOWED
        return Denial(text, "cancelled")

    async def _decide(
        self, work: CallState, decision: ApprovalOutcome, reason: str, scope: str = ""
    ) -> None:
        work.decision = decision
        await self._emit(
            ToolDecided(call_id=work.call.id, decision=decision, reason=reason, scope=scope)
        )


class OuterApproval(Hooks):
    """A session's policy and user, for the calls of a session that one of its calls runs."""

    def __init__(self, outer: Approval) -> None:
        self._outer = outer
        self._asked: set[str] = set()

    @property
    def answers(self) -> bool:
        """Whether a user of the outer session can be asked."""
        return self._outer.approver is not None

    def asks(self, call: ToolCall) -> bool:
        """Whether the outer policy requires approval of a call."""
        return call.id in self._asked

    async def before_call(self, call: HookedCall) -> CallDecision | None:
        """Denies and asks where the outer policy does."""
        if call.delegates:
            return None
        named = ToolCall(id=self._outer_id(call.id), name=call.name, arguments=dump(call.arguments))
        ruling = self._outer.policy(named, call.effect, call.paths, call.arguments)
        if ruling.decision == "deny":
            return Deny(ruling.reason, f"{DENIED} {ruling.reason}".rstrip())
        if ruling.decision == "ask":
            self._asked.add(call.id)
            return Ask(ruling.reason)
        return None

    async def confirm(self, question: Confirmation) -> UserAnswer:
        """The answer of the outer session's user."""
        approver = self._outer.approver
        if approver is None:
            return UserAnswer(choice=Choice.CANCEL, feedback=NO_USER)
        async with self._outer.asking:
            answer = await approver(question)
        if answer.choice in _SCOPES:
            named = msgspec.structs.replace(question.call, id=self._outer_id(question.call.id))
            self._outer.remember(named, answer.choice)
        return answer

    def _outer_id(self, id: str) -> str:
        # Both sessions have calls with ids of their own.
        return f"{builtins.id(self)}:{id}"


def _with_opinion(ruling: Ruled, opinion: Opinion) -> Ruled:
    """The ruling after the hooks, which may tighten it, and loosen it only where it would ask."""
    if opinion.decision == "ask" and ruling.decision == "allow":
        return _Ask(opinion.reason, approved=_permit(ruling, "permit"))
    answers = opinion.decision == "allow" and ruling.decision == "ask"
    if answers and not getattr(ruling, "protected", False):
        return _Allowed(opinion.reason, _permit(ruling, "approved"))
    return ruling


def details_of(
    tool: Tool,
    arguments: JsonObject,
    proposals: tuple[Proposal, ...],
    edited: str | None = None,
    roots: Roots = first_word,
) -> Details:
    """Details of the call for the user."""
    if proposals:
        return _edit(tool, proposals, edited)
    if tool.server:
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        return McpDetails(
            server=tool.server,
            tool=tool.name,
            arguments=shown,
            description=tool.description,
            hints=tool.hints,
        )
    command = arguments.get("command")
    if tool.effect is Effect.EXECUTE and isinstance(command, str):
        directory = arguments.get("directory")
        return ExecDetails(
            command=command,
            roots=roots(command),
            directory=directory if isinstance(directory, str) else "",
        )
    prompt = next((str(value) for value in arguments.values() if isinstance(value, str)), "")
    urls = tuple(word for word in prompt.split() if word.startswith(("http://", "https://")))
    return InfoDetails(prompt=prompt, urls=urls)


def _as_edited(proposals: tuple[Proposal, ...], edited: str | None) -> tuple[Proposal, ...]:
    """The proposals with the text that the user made of the only one."""
    if edited is None:
        return proposals
    return tuple(msgspec.structs.replace(one, after=edited) for one in proposals)


def _edit(tool: Tool, proposals: tuple[Proposal, ...], edited: str | None) -> EditDetails:
    shown = [
        diff_of(one.before, one.after if edited is None else edited, one.path.name)
        for one in proposals
    ]
    return EditDetails(
        paths=tuple(one.path for one in proposals),
        diff="".join(shown),
        stat=stat_of(proposals, edited),
        new_file=all(one.new_file for one in proposals),
        editable=tool.adopt is not None and len(proposals) == 1,
    )


def stat_of(proposals: tuple[Proposal, ...], edited: str | None = None) -> DiffStat:
    """Line counts of the model's edit, and of the user's changes to it."""
    stats = [
        edit.stat_of(one.before, one.after)
        if edited is None
        else edit.stat_of(one.before, edited, one.after)
        for one in proposals
    ]
    return DiffStat(
        model_added=sum(one.model_added for one in stats),
        model_removed=sum(one.model_removed for one in stats),
        user_added=sum(one.user_added for one in stats),
        user_removed=sum(one.user_removed for one in stats),
    )
