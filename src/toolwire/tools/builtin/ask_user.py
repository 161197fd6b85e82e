"""`ask_user`: one question to the user, and the answer."""

from typing import Annotated

import msgspec

from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words


class AskUser(msgspec.Struct, frozen=True):
    """Arguments of `ask_user`."""

    question: Annotated[
        str, msgspec.Meta(min_length=1, description="The question, complete in itself.")
    ]
    choices: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1)]],
        msgspec.Meta(max_length=4, description="Optional: likely answers, the best one first."),
    ] = []


@tool("ask_user", Effect.READ, words("ask_user"), title="AskUser")
async def ask_user(args: AskUser, context: ToolContext) -> ToolOutput:
    """Wait for the user's answer."""
    if context.ask is None:
        raise ToolFailed(
            "no user is present to answer; decide by yourself, and state what you assumed",
            type="nobody_to_ask",
        )
    answer = await context.ask(args.question, tuple(args.choices))
    return ToolOutput(text=f"The user answered: {answer}", display=answer)


TOOL = ask_user
