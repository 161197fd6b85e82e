"""Builds the parts of a session: its journal, models, mode, tools and system prompt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.agent.events import AgentEvent, Emit
from toolwire.app.equipment import Equipment, enforced
from toolwire.app.model_choice import choose_here, choose_model
from toolwire.app.model_stack import Opened, model_stack, open_models
from toolwire.app.options import HostOverrides, SessionOptions
from toolwire.app.stored_sessions import open_journal, stored_sessions
from toolwire.app.system_prompt import system_text
from toolwire.app.toolbox import AskPerson, Toolbox, make_toolbox
from toolwire.client.http.transport import Transport
from toolwire.client.redact import known_secrets
from toolwire.compaction.summary import Compressor
from toolwire.compaction.tokens import of_message
from toolwire.config import Settings
from toolwire.errors import SessionError, UnknownName
from toolwire.messages import Message, Part, Text, ToolResult
from toolwire.policy import Mode
from toolwire.providers.custom import NAME
from toolwire.request import ModelRequest, Reasoning
from toolwire.sessions.replay import Session, replay
from toolwire.sessions.store import OpenJournal, SessionStore
from toolwire.storage.paths import state_paths
from toolwire.tools.registry import plain
from toolwire.tools.spec import Tool

if TYPE_CHECKING:
    from toolwire.embedded.weights import DownloadConsent


_LOOSENESS = (Mode.PLAN, Mode.DEFAULT, Mode.AUTO_EDIT, Mode.YOLO)


class SessionBuilder(msgspec.Struct, frozen=True, kw_only=True):
    """Builds a session from its options, and collects notices for the user."""

    options: SessionOptions
    settings: Settings
    environ: Mapping[str, str]
    cwd: Path
    own: HostOverrides | None
    store: SessionStore | None
    transport: Transport
    consent: DownloadConsent | None
    replayed: Callable[[list[AgentEvent]], None]
    notices: list[str] = []

    async def journal(self, stack: AsyncExitStack) -> tuple[OpenJournal | None, Session]:
        """Returns the journal, locked until the session ends, and its past."""
        options = self.options
        try:
            journal = open_journal(
                options,
                self.sessions,
                self.cwd,
                keep_days=self.settings.sessions.keep_days,
                now=time.time(),
            )
        except SessionError as error:
            if not options.may_forget or options.session or options.latest:
                raise
            journal = None
            self.notices.append(f"the session is not stored: {error}")
        if journal is None:
            return None, Session()
        stack.push_async_callback(journal.close)
        events = await journal.read(journal.session)
        self.replayed(events)
        past = replay(events)
        self.notices.extend(journal.notices)
        return journal, past

    @property
    def sessions(self) -> SessionStore:
        """Where sessions are stored."""
        return self.store or stored_sessions(self.environ, self.settings)

    async def other_model(self, name: str, now: Equipment) -> tuple[str, tuple[Opened, ...]]:
        """Returns another model than the session's, with its fallbacks."""
        return await self._open(self._switched(name, "", now), "")

    async def models(self, past: Session) -> tuple[str, tuple[Opened, ...]]:
        """Returns the model's name, and the model with its fallbacks."""
        own, options = self.own, self.options
        if own is not None and own.model is not None:
            return own.model.name, (own.model,)
        style = options.tool_style or past.chosen_style
        return await self._open(msgspec.structs.replace(options, tool_style=style), past.model)

    async def _open(self, options: SessionOptions, before: str) -> tuple[str, tuple[Opened, ...]]:
        choose = partial(
            choose_model,
            self.settings,
            self.environ,
            model=options.model,
            provider=options.provider,
            upstream=options.upstream,
            before=before,
        )
        weights = self.consent.weights if self.consent is not None else None
        chosen = await choose_here(
            choose, self.settings, self.environ, self.transport, weights=weights
        )
        if chosen.short:
            self.notices.append(f'"{chosen.short}" is {chosen.name}')
        models = await open_models(
            chosen,
            options,
            environ=self.environ,
            transport=self.transport,
            notice=self.notices.append,
            cwd=self.cwd,
            consent=self.consent,
        )
        limits = options.limits or self.settings.limits
        first = models[0]
        if limits.cost and not first.provider.local and (not first.info or not first.info.prices):
            self.notices.append(
                f"the price of {chosen.name} is not known: the limit of its cost holds only if the "
                "server reports what it costs"
            )
        return chosen.name, tuple(models)

    def mode(self, opened: Opened, past: Session) -> Mode:
        """Returns the approval mode: the flag, the one chosen in the session, or the setting.

        A looser mode is not resumed: it was chosen for the session that the user watched.
        """
        mode = self.options.mode or self.settings.approval_mode
        chosen = Mode(past.chosen_mode) if past.chosen_mode in tuple(Mode) else mode
        if self.options.mode is None and chosen is not mode:
            if _LOOSENESS.index(chosen) < _LOOSENESS.index(mode):
                mode = chosen
            else:
                self.notices.append(
                    f"the session ran in {chosen} mode and continues in {mode} mode; use "
                    f"--approval-mode {chosen} to continue in that one"
                )
        return self._fitting(mode, opened, explicit=self.options.mode is not None)

    def _fitting(self, mode: Mode, opened: Opened, *, explicit: bool) -> Mode:
        """Returns the mode for this model: with a small one, changes are not made without asking
        unless the user chose that for this session.
        """
        if explicit or not opened.provider.small:
            return mode
        return cautious(mode, self.notices.append)

    def equipment(
        self, name: str, models: tuple[Opened, ...], mode: Mode, toolbox: Toolbox, sink: Emit
    ) -> Equipment:
        """Returns what depends on the model and the mode."""
        first = models[0]
        aside = model_stack((first,), cache_marks=True)
        toolbox = toolbox.with_model(aside, first.provider.dialect)
        window = first.info.context if first.info is not None else 0
        if toolbox.servers is not None:
            toolbox.servers.fit(window)
        shorten = Compressor(
            aside,
            window=window,
            temp=toolbox.context.workspace.temp,
            emit=sink,
            rules=self.settings.compression,
            price=first.price,
            weigh=tokens_shown_small if first.provider.small else of_message,
        )
        return Equipment(
            name=name,
            models=models,
            mode=mode,
            ask=model_stack(models, cache_marks=True, session=shorten.watching),
            toolbox=toolbox,
            shorten=shorten,
            system=self.system(toolbox, mode, window),
            format=enforced(self.options.output, models, tools=bool(toolbox.registry.names)),
        )

    async def changed(
        self,
        sink: Emit,
        now: Equipment,
        *,
        model: str = "",
        style: str = "",
        mode: Mode | None = None,
    ) -> tuple[Equipment, list[str]]:
        """Returns the equipment of the open session after a change, and notices about it."""
        before = len(self.notices)
        if model or style:
            options = self._switched(model or now.name, style, now)
            name, models = await self._open(options, "")
            mode = self._fitting(now.mode, models[0], explicit=self.options.mode is now.mode)
            equipment = self.equipment(name, models, mode, now.toolbox, sink)
        else:
            mode = mode or now.mode
            system = self.system(now.toolbox, mode)
            equipment = msgspec.structs.replace(now, mode=mode, system=system)
        known = self.notices[:before]
        return equipment, [words for words in self.notices[before:] if words not in known]

    def _switched(self, name: str, style: str, now: Equipment) -> SessionOptions:
        """Returns the options for another model; key and address are for their provider only."""
        options = msgspec.structs.replace(
            self.options, provider="", tool_style=style or self.options.tool_style
        )
        provider, _, model = name.partition("/")
        back = provider == NAME and options.upstream is not None
        if provider != now.models[0].provider.name and not back:
            return msgspec.structs.replace(options, model=name, upstream=None, key="", base_url="")
        return msgspec.structs.replace(options, model=model if options.upstream else name)

    async def toolbox(
        self,
        stack: AsyncExitStack,
        mode: Mode,
        tools: Iterable[Tool],
        ask: AskPerson | None,
        *,
        headless: bool,
        temp: Path | None,
    ) -> Toolbox:
        """Returns the toolbox; without a user, no tool that asks one is offered."""
        own = self.own
        toolbox = await make_toolbox(
            self.settings,
            environ=self.environ,
            cwd=self.cwd,
            mode=mode,
            headless=headless,
            folders=self.options.folders,
            allowed=self.options.allowed,
            secrets=known_secrets(),
            tools=tools,
            ask=ask,
            temp=temp,
            registry=own.tools if own is not None else None,
            rules=own is None or own.rules,
            notice=self.notices.append,
            servers=self.options.servers,
            hidden=self.options.hidden,
            container=self.options.container,
            files=self.options.files,
            live_seconds=self.options.live_seconds,
        )
        if own is None:
            toolbox = self._with_skills(toolbox)
            self._check_allowed(toolbox)
        # No nested generators: an event loop that ends closes both at once.
        stack.push_async_callback(toolbox.close)
        if ask is None:
            toolbox.registry.take(toolbox.registry.without(("ask_user",)))
        return toolbox if own is None else toolbox.hosted(own.deps, own.restricts)

    def _with_skills(self, toolbox: Toolbox) -> Toolbox:
        """Returns the toolbox with the skills of this folder and user, if there are any."""
        home, config = toolbox.context.workspace.home, state_paths(self.environ).config
        trusted = self.settings.trusted is True
        folders = self.settings.skills.folders(self.cwd, home, config, trusted=trusted)
        if not folders:
            return toolbox
        from toolwire.app.extensions import join_skills  # noqa: PLC0415 - only with skills

        return join_skills(toolbox, self.settings, folders, self.notices.append)

    def _check_allowed(self, toolbox: Toolbox) -> None:
        """Raises for an allowed tool that does not exist; those of MCP servers may come later."""
        registry, servers = toolbox.registry, toolbox.servers is not None
        for entry in self.options.allowed:
            name = plain(entry)
            later = servers or name.startswith("mcp_") or "__" in name
            if not (later or registry.get(name) or set(name) & set("*?[")):
                raise UnknownName("tool in --allowed-tools", name, registry.names)

    def system(self, toolbox: Toolbox, mode: Mode, window: int = 0) -> str:
        """Returns the system prompt: the host program's, or ours with the folder's notes."""
        if self.own is not None:
            text = self.own.system
        else:
            text = system_text(
                self.options,
                self.settings,
                self.environ,
                toolbox=toolbox,
                mode=mode,
                notice=self.notices.append,
            )
        output = self.options.output
        if toolbox.servers is not None:
            text = "\n\n".join(filter(None, (text, toolbox.servers.prompt())))
        if toolbox.skills is not None:
            text = "\n\n".join(filter(None, (text, toolbox.skills.prompt(window))))
        text = "\n\n".join(filter(None, (text, self.options.append_system)))
        return text if output is None else output.added_to(text)

    def request(self, equipment: Equipment, messages: tuple[Message, ...]) -> ModelRequest:
        """Returns the initial request."""
        reasoning = self.settings.reasoning
        return ModelRequest(
            model=equipment.models[0].model,
            messages=messages,
            system=(Text(equipment.system),) if equipment.system else (),
            tools=equipment.toolbox.specs(),
            reasoning=None if reasoning == Reasoning() else reasoning,
            temperature=self.options.temperature,
            output=equipment.format,
        )


def tokens_shown_small(message: Message) -> int:
    """Returns a message's tokens for a small model, which gets only the ends of long results."""
    from toolwire.embedded.small.past import RESULT_LIMIT  # noqa: PLC0415 - start-up time

    def cut(part: Part) -> Part:
        if not isinstance(part, ToolResult) or len(part.text) <= RESULT_LIMIT:
            return part
        return msgspec.structs.replace(part, parts=(Text(part.text[:RESULT_LIMIT]),))

    return of_message(Message(role=message.role, parts=tuple(map(cut, message.parts))))


def cautious(mode: Mode, notice: Callable[[str], None]) -> Mode:
    """Returns the approval mode for a small model, which easily confuses files."""
    if mode in (Mode.DEFAULT, Mode.PLAN):
        return mode
    notice(
        f"the embedded model asks before every change, although approval_mode is set to {mode}; "
        f"use --approval-mode {mode} to change that for one session"
    )
    return Mode.DEFAULT
