"""Questions to the user through the editor: permissions, forms, and those of MCP servers."""

from collections.abc import Callable
from typing import Any

import msgspec

from toolwire.acp.client import EditorClient
from toolwire.acp.updates import Updates
from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    InfoDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.ids import new_id
from toolwire.mcp.client import Elicit
from toolwire.mcp.elicitation import DECLINED, asking
from toolwire.mcp.lists import members, text
from toolwire.mcp.peer import RpcError
from toolwire.request import JsonObject
from toolwire.tools.spec import ToolFailed

CONTENT = "toolwire/content"
"""In `_meta` of an answer: the text that the user made of an edit."""
FEEDBACK = "toolwire/feedback"
_DECLINED = "the user did not answer; decide by yourself, and state what you assumed"
_NO_TEXT = "this editor cannot ask for text; ask in your answer, and end your turn"


def options(question: Confirmation) -> list[JsonObject]:
    """The answers that a question may have."""
    found: list[JsonObject] = [_option(Choice.ONCE, "Allow once", "allow_once")]
    if question.remembers:
        found.append(_option(Choice.SESSION, "Allow for this session", "allow_always"))
        found.append(_option(Choice.ALWAYS, "Always allow in this project", "allow_always"))
        if isinstance(question.details, McpDetails):
            words = f"Always allow every tool of {question.details.server}"
            found.append(_option(Choice.SERVER, words, "allow_always"))
    return [*found, _option(Choice.CANCEL, "Reject", "reject_once")]


def _option(choice: Choice, name: str, kind: str) -> JsonObject:
    return {"optionId": str(choice), "name": name, "kind": kind}


def words_of(question: Confirmation) -> str:
    """What a call would do, in words."""
    details = question.details
    match details:
        case ExecDetails():
            where = f"\n\nin {details.directory}" if details.directory else ""
            words = f"```sh\n{details.command}\n```{where}"
        case McpDetails():
            words = f"{details.server}: {details.tool}\n```json\n{details.arguments}\n```"
        case InfoDetails():
            words = details.prompt
        case EditDetails():
            words = f"```diff\n{details.diff}\n```"
    allows = "".join(f"\n- {each}" for each in question.remembers)
    kept = f"\n\nTo allow it for longer allows:{allows}" if allows else ""
    return f"{words}\n\n{question.reason}{kept}".strip()


class EditorQuestions:
    """Asks the user of one session."""

    def __init__(self, client: EditorClient, updates: Callable[[], Updates]) -> None:
        self._client = client
        self._updates = updates
        self.session = ""
        self.asking_call = ""
        """The call of `ask_user` that runs."""

    async def approve(self, question: Confirmation) -> UserAnswer:
        """The user's answer; a question that cannot be asked is a no."""
        updates = self._updates()
        updates.proposed(question.call.id, question.proposals)
        call = updates.asked(question.call, question.proposals, words_of(question))
        offered = options(question)
        try:
            answer = await self._permission(call, offered)
        except RpcError as error:
            words = f"the editor could not ask: {error.words}"
            return UserAnswer(choice=Choice.CANCEL, feedback=words)
        outcome, meta = members(answer.get("outcome")), members(answer.get("_meta"))
        chosen = outcome.get("optionId")
        if outcome.get("outcome") != "selected" or chosen not in [o["optionId"] for o in offered]:
            return UserAnswer(choice=Choice.CANCEL, feedback=text(meta.get(FEEDBACK)))
        changed = meta.get(CONTENT, members(outcome.get("_meta")).get(CONTENT))
        content = changed if isinstance(changed, str) else None
        if content is not None and len(question.proposals) == 1:
            own = msgspec.structs.replace(question.proposals[0], after=content)
            updates.proposed(question.call.id, (own,))
        return UserAnswer(choice=Choice(chosen), content=content, feedback=text(meta.get(FEEDBACK)))

    async def _permission(self, call: JsonObject, offered: list[JsonObject]) -> JsonObject:
        params: JsonObject = {"sessionId": self.session, "toolCall": call, "options": offered}
        return members(await self._client.ask("session/request_permission", params))

    async def ask(self, question: str, choices: tuple[str, ...]) -> str:
        """The answer to a question of `ask_user`; ToolFailed if the user gives none."""
        try:
            if self._client.features.form:
                return await self._by_form(question, choices)
            if choices:
                return await self._by_choice(question, choices)
        except RpcError as error:
            raise ToolFailed(f"the editor could not ask: {error.words}") from error
        raise ToolFailed(_NO_TEXT)

    async def _by_form(self, question: str, choices: tuple[str, ...]) -> str:
        answer: JsonObject = {"type": "string", "title": "Answer"}
        properties: JsonObject = {"answer": answer}
        if choices:
            answer["enum"] = list(choices)
            properties["other"] = {"type": "string", "title": "Another answer"}
        schema: JsonObject = {"type": "object", "properties": properties}
        if not choices:
            schema["required"] = ["answer"]
        found = await self._elicited({"message": question, "requestedSchema": schema})
        content = members(found.get("content"))
        given = text(content.get("other")).strip() or text(content.get("answer")).strip()
        if found.get("action") != "accept" or not given:
            raise ToolFailed(_DECLINED)
        return given

    async def _by_choice(self, question: str, choices: tuple[str, ...]) -> str:
        call: JsonObject = {
            "toolCallId": self._updates().call_id(self.asking_call) or new_id("ask_"),
            "title": question,
            "kind": "other",
            "status": "pending",
        }
        offered: list[JsonObject] = [
            {"optionId": f"answer-{number}", "name": words, "kind": "allow_once"}
            for number, words in enumerate(choices)
        ]
        offered.append({"optionId": "decline", "name": "No answer", "kind": "reject_once"})
        answer = await self._permission(call, offered)
        chosen = members(answer.get("outcome")).get("optionId")
        for number, words in enumerate(choices):
            if chosen == f"answer-{number}":
                return words
        raise ToolFailed(_DECLINED)

    async def _elicited(self, params: JsonObject) -> JsonObject:
        about: JsonObject = {"sessionId": self.session, "mode": "form", **params}
        if self.asking_call:
            about["toolCallId"] = self._updates().call_id(self.asking_call)
        return members(await self._client.ask("elicitation/create", about))

    def of_server(self, server: str) -> Elicit:
        """What answers the questions of an MCP server: the editor's form, or single questions."""
        plainly = asking(self.ask)(server)

        async def elicit(params: JsonObject) -> JsonObject:
            try:
                return await self._forwarded(server, params) or await plainly(params)
            except (RpcError, ToolFailed):
                return DECLINED

        return elicit

    async def _forwarded(self, server: str, params: JsonObject) -> JsonObject | None:
        """The editor's answer to a form or an address; None if it cannot show that."""
        message = f"The MCP server {server} asks: {text(params.get('message'))}"
        features = self._client.features
        about: dict[str, Any] = {"sessionId": self.session, "message": message}
        if params.get("mode") == "url" or "url" in params:
            if not features.url:
                return None
            id = text(params.get("elicitationId")) or new_id("ask_")
            about |= {"mode": "url", "url": params.get("url"), "elicitationId": id}
        elif features.form:
            about |= {"mode": "form", "requestedSchema": params.get("requestedSchema")}
        else:
            return None
        found = members(await self._client.ask("elicitation/create", about))
        if found.get("action") not in ("accept", "decline", "cancel"):
            return DECLINED
        return {name: found[name] for name in ("action", "content") if name in found}
