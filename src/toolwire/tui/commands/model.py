"""Commands about the model: which one, its tool style, its effort, its tools, and the mode."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from toolwire.auth.credentials import credential_for, open_store
from toolwire.auth.store import Store
from toolwire.config import edit
from toolwire.config.layers import config_files
from toolwire.config.schema import dotted
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.prompted import StyleChoice, ToolStyle, choose
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.request import Effort, Reasoning
from toolwire.storage.paths import state_paths
from toolwire.terminal_text import one_line
from toolwire.tui.state import MODE_WORDS
from toolwire.tui.views.lists import ENTER, ListItem, ListView, Picked
from toolwire.tui.views.pager import Pager, PagerBlock

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

EFFORTS = tuple(map(str, Effort))


async def model(app: "TerminalApp", argument: str) -> None:
    """Shows or changes the model; the chosen one becomes the default, unless for this session.

    `/model P/M session` is the key `s` of the list.
    """
    now = app.session.opened.name
    argument, _, rest = argument.partition(" ")
    if rest.strip() not in ("", "session"):
        raise BadInput(f"/model {argument} takes only the word session, not {one_line(rest)!r}")
    default = bool(argument) and not rest.strip()
    if not argument:
        view = ListView(
            app.surface,
            f"model (now {now})",
            _models(app),
            actions={"s": "this session only"},
            enter="uses it from now on",
            chosen=now,
        )
        picked: Picked = await app.open(view)
        argument, default = picked.key, picked.action == ENTER
    if argument:
        await app.session.change_model(argument)
        default = default and _configured(app)
        if default:
            _store(app, "default_model", app.session.opened.name)
    app.say(f"model: {app.session.opened.name}{', also the default' if default else ''}", "dim")


def _configured(app: "TerminalApp") -> bool:
    """Whether later sessions know the provider: one of the command line is only this process's."""
    try:
        app.start.settings.provider(app.session.opened.provider.name)
    except UnknownName:
        return False
    return True


def model_names(app: "TerminalApp") -> tuple[str, ...]:
    """The names of all known models."""
    known = catalogue.models(None, app.start.settings.models)
    return tuple(f"{info.provider}/{info.id}" for info in known)


def _models(app: "TerminalApp") -> list[ListItem]:
    """Every known model; those of providers with a credential first."""
    settings, environ = app.start.settings, app.start.environ
    known = catalogue.models(None, settings.models)
    own = app.session.opened.provider.name
    store = open_store(state_paths(environ), environ)
    names = {info.provider for info in known}
    ready = {name: _ready(settings.provider(name), environ, store) for name in names}

    def rank(info: ModelInfo) -> tuple[bool, bool, bool]:
        local = settings.provider(info.provider).local
        return info.provider != own, not ready[info.provider], local

    items = [_described(info, app, ready[info.provider]) for info in sorted(known, key=rank)]
    return items or [ListItem(key=app.session.opened.name, cells=(app.session.opened.name,))]


def _ready(provider: Provider, environ: Mapping[str, str], store: Store) -> bool:
    """Whether there is a credential for a provider."""
    try:
        credential_for(provider, environ=environ, store=store)
    except ToolwireError:
        return False
    return True


def _described(info: ModelInfo, app: "TerminalApp", ready: bool) -> ListItem:
    name = f"{info.provider}/{info.id}"
    window = f"{info.context // 1000:,}k" if info.context else "?"
    prices = info.prices
    price = f"${prices.input:g} / ${prices.output:g}" if prices else "no price"
    style = choose(app.start.settings.provider(info.provider), info.id, info=info)
    can = [word for word, has in (("images", info.images), ("thinking", info.thinking)) if has]
    about = f"{style.style}: {style.reason}. Price per million tokens in and out, {info.dated}."
    cells = (name, window, price, str(style.style), ", ".join(can), "" if ready else "no key")
    return ListItem(key=name, cells=cells, about=about)


async def style(app: "TerminalApp", argument: str) -> None:
    """Shows or changes how tools are described to the model; `d` stores it for the model."""
    opened = app.session.opened
    stored = False
    word, _, rest = argument.partition(" ")
    if not argument:
        items = [_option(app, one) for one in ToolStyle]
        heading = f"tool style of {opened.name}: {opened.style.style} in use"
        view = ListView(
            app.surface,
            heading,
            items,
            actions={"d": f"also stores it for {opened.name}"},
            enter="from the next request",
            chosen=str(opened.style.style),
        )
        picked: Picked = await app.open(view)
        word, stored = picked.key if picked.action else "", picked.action == "d"
    if not word:
        _say_style(app, opened.style, "tool style in use")
        return
    await app.session.change_style(word)
    _say_style(app, opened.style, "tool style before")
    _say_style(app, app.session.opened.style, "tool style in use")
    if stored or rest.strip() == "default":
        key = dotted("models", opened.name, "tool_style")
        _store(app, key, word)
        _remember_style(app, word)
        app.say(f"stored for {opened.name}", "dim")


def _say_style(app: "TerminalApp", choice: StyleChoice, words: str) -> None:
    app.say(f"{words}: {choice.style}")
    app.say(f"why: {one_line(choice.reason)}", "dim")
    if choice.warning:
        app.say(f"warning: {one_line(choice.warning)}", "warning")


def _option(app: "TerminalApp", one: ToolStyle) -> ListItem:
    opened = app.session.opened
    found = choose(opened.provider, opened.model, one, info=opened.info)
    about = f"{found.style} would be used: {found.reason}"
    if found.warning:
        about += f"\nwarning: {found.warning}"
    used = "in use" if one == opened.style.style else ""
    return ListItem(key=str(one), cells=(_STYLES[one][0], used, _STYLES[one][1]), about=about)


_STYLES = {
    ToolStyle.AUTO: ("Let it decide", "the best that is known for the model"),
    ToolStyle.NATIVE: ("Native", "the provider's own tool calls"),
    ToolStyle.XML: ("XML", "calls as XML in the text, for models without native calls"),
    ToolStyle.JSON: ("JSON", "answers held to a JSON Schema by the server"),
}


def _remember_style(app: "TerminalApp", word: str) -> None:
    """Later sessions of this process know the stored style too."""
    opened = app.session.opened
    info = opened.info or ModelInfo(provider=opened.provider.name, id=opened.model)
    info = msgspec.structs.replace(info, id=opened.model, tool_style=word)
    settings = app.start.settings
    models = (
        *(one for one in settings.models if (one.provider, one.id) != (info.provider, info.id)),
        info,
    )
    app.start = msgspec.structs.replace(
        app.start, settings=msgspec.structs.replace(settings, models=models)
    )


def _store(app: "TerminalApp", key: str, value: str) -> None:
    start = app.start
    files = config_files(start.environ, start.cwd)
    edit.set_value(files, files.user, key, value, start.cwd)


async def effort(app: "TerminalApp", argument: str) -> None:
    """Shows or changes the reasoning effort of later requests."""
    session = app.session
    info = session.opened.info
    now = session.request.reasoning or Reasoning()
    if info is not None and not info.thinking:
        app.say(f"{session.opened.name} is not known to reason; it may ignore an effort", "warning")
    if not argument:
        items = [("auto", "left to the model"), *((one, "") for one in EFFORTS)]
        argument = await app.pick(
            f"effort (now {now.effort or 'auto'})", items, now.effort or "auto"
        )
    if argument:
        if argument not in ("auto", *EFFORTS):
            raise UnknownName("effort", argument, ("auto", *EFFORTS))
        session.change_effort(None if argument == "auto" else Effort(argument))
        now = session.request.reasoning or Reasoning()
    app.say(f"effort: {now.effort or 'left to the model'}", "dim")


async def mode(app: "TerminalApp", argument: str) -> None:
    """Shows or changes which calls need a yes."""
    if not argument:
        argument = await app.pick(
            f"approval mode (now {_shown(app.session.mode)})",
            tuple((_shown(name), words) for name, words in _MODES.items()),
            _shown(app.session.mode),
        )
    if not argument:
        return
    argument = next((name for name, word in MODE_WORDS.items() if word == argument), argument)
    if argument not in tuple(Mode):
        raise UnknownName("mode", argument, mode_names())
    if argument == Mode.YOLO and app.session.mode is not Mode.YOLO and not app.agreed_to_yolo:
        if not await app.questions.agrees("run every call without asking, in this session?"):
            return
        app.agreed_to_yolo = True
    await app.session.set_mode(Mode(argument))


def mode_names() -> tuple[str, ...]:
    """The approval modes as the screen names them."""
    return tuple(map(_shown, _MODES))


def _shown(name: str) -> str:
    return MODE_WORDS.get(name, str(name))


_MODES = {
    str(Mode.DEFAULT): "asks before changes and commands",
    str(Mode.AUTO_EDIT): "edits files of the workspace without asking; asks for the rest",
    str(Mode.PLAN): "reads only, and makes a plan",
    str(Mode.YOLO): "runs every call without asking",
}


async def tools(app: "TerminalApp", argument: str) -> None:
    """Shows the tools: effect, description, and what happens when one is called."""
    del argument
    painter = app.drawing.painter
    terms = app.session.toolbox.policy.terms
    root = terms.locations.roots[0]
    blocks: list[PagerBlock] = []
    for tool in sorted(app.session.toolbox.registry, key=lambda one: (one.server, one.name)):
        ruling = rule(tool.name, tool.effect, (root,), {}, terms)
        head = painter.line(
            (tool.name, "call"),
            (f"  {tool.effect}", "dim"),
            (f"  of {one_line(tool.server)}" if tool.server else "", "dim"),
            f"  {ruling.decision}",
            (f"  {one_line(ruling.reason)}" if ruling.reason else "", "dim"),
        )
        body = [
            painter.line((f"    {line}", "dim")) for line in tool.description.strip().split("\n")
        ]
        blocks.append(PagerBlock((head, *body), tool.description))
    if not blocks:
        raise BadInput("no tools are offered")
    await app.open(Pager(app.surface, f"{len(blocks)} tools", blocks, end=False, folded=True))
