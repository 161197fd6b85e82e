"""Commands about the model: which one, its tool style, its tools, and which calls need a yes."""

from typing import TYPE_CHECKING

from toolwire.errors import UnknownName
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.terminal_text import one_line, terminal_text

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp


async def model(app: "TerminalApp", argument: str) -> None:
    """Shows or changes the model."""
    if not argument:
        argument = await app.pick(f"model (now {app.session.opened.name})", _models(app))
    if argument:
        await app.session.change_model(argument)
    app.say(f"model: {app.session.opened.name}", "dim")


def _models(app: "TerminalApp") -> list[tuple[str, str]]:
    known = catalogue.models(None, app.start.settings.models)
    own = app.session.opened.provider.name
    ranked = sorted(known, key=lambda info: info.provider != own)
    return [
        (f"{info.provider}/{info.id}", f"{info.context or 0:>9,} tokens of context")
        for info in ranked
    ]


async def style(app: "TerminalApp", argument: str) -> None:
    """Shows or changes how tools are described to the model."""
    before = app.session.opened.style
    if not argument:
        items = [(str(style), _STYLES.get(style, "")) for style in ToolStyle]
        now = f"tool style: {before.style} in use ({before.reason})"
        argument = await app.pick(now, items)
    if argument:
        await app.session.change_style(argument)
    style = app.session.opened.style
    app.say(f"tool style in use: {style.style}")
    app.say(f"why: {one_line(style.reason)}", "dim")
    if style.warning:
        app.say(f"warning: {one_line(style.warning)}", "warning")


_STYLES = {
    ToolStyle.AUTO: "let it decide: the best that is known for the model",
    ToolStyle.NATIVE: "the provider's own tool calls",
    ToolStyle.XML: "calls as XML in the text, for models without native calls",
    ToolStyle.JSON: "answers held to a JSON Schema by the server",
}


async def mode(app: "TerminalApp", argument: str) -> None:
    """Shows or changes which calls need a yes."""
    if argument:
        if argument not in tuple(Mode):
            raise UnknownName("mode", argument, tuple(Mode))
        if argument == Mode.YOLO and app.session.mode is not Mode.YOLO:
            question = "run every call without asking, in this session?"
            if not await app.questions.agrees(question):
                return
        await app.session.set_mode(Mode(argument))
    else:
        app.say(f"approval mode: {app.session.mode}")


async def tools(app: "TerminalApp", argument: str) -> None:
    """Lists the tools."""
    del argument
    for tool in app.session.toolbox.registry:
        words = terminal_text(tool.description).strip().partition("\n")[0]
        app.say(f"{tool.name}  ({tool.effect})  {words}")
