"""Modes and options of a session: approval mode, model, reasoning."""

import asyncio
from collections.abc import Mapping

from toolwire.acp.protocol import bad
from toolwire.app.session import AgentSession
from toolwire.auth.credentials import FixedCredential, credential_for, open_store
from toolwire.auth.store import Store
from toolwire.config import Settings
from toolwire.errors import ToolwireError
from toolwire.policy import Mode
from toolwire.providers import catalogue
from toolwire.providers.addresses import address
from toolwire.request import Effort, JsonObject, Reasoning
from toolwire.storage.paths import state_paths

AUTO = "auto"
MODES = {
    Mode.DEFAULT: ("Default", "Asks before it changes files or runs commands."),
    Mode.AUTO_EDIT: ("Auto edit", "Edits files of the workspace without asking."),
    Mode.YOLO: ("YOLO", "Runs everything without asking."),
    Mode.PLAN: ("Plan", "Only reads: nothing is changed."),
}


def modes(session: AgentSession) -> JsonObject:
    """The approval modes, and the one in use."""
    return {
        "currentModeId": str(session.mode),
        "availableModes": [
            {"id": str(mode), "name": name, "description": about}
            for mode, (name, about) in MODES.items()
        ],
    }


def usable_models(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """The known models of providers that have a credential; reads the store of credentials."""
    store = open_store(state_paths(environ), environ)
    ready: dict[str, bool] = {}
    found: list[str] = []
    for info in catalogue.models(None, settings.models):
        if info.provider not in ready:
            ready[info.provider] = _is_ready(info.provider, settings, environ, store)
        if ready[info.provider]:
            found.append(f"{info.provider}/{info.id}")
    return found


def _is_ready(name: str, settings: Settings, environ: Mapping[str, str], store: Store) -> bool:
    try:
        provider = settings.provider(name)
        if provider.local:
            return False
        credential = credential_for(provider, environ=environ, store=store)
        if not isinstance(credential, FixedCredential):
            # A login of Google's may be looked for on the network: it needs its project here.
            address(provider, environ)
    except ToolwireError:
        return False
    return True


class SessionChoices:
    """The options of one session."""

    def __init__(self, session: AgentSession, models: list[str]) -> None:
        self._session = session
        self._models = [session.opened.name, *models]
        self.answering = ""
        """The model that answers, if it is another than the chosen one."""

    def listed(self) -> list[JsonObject]:
        """Every option with its values and the one in use."""
        session = self._session
        name = self.answering or session.opened.name
        models = list(dict.fromkeys((*self._models, session.opened.name, name)))
        found = [
            _select("mode", "Mode", "mode", str(session.mode), _mode_values()),
            _select("model", "Model", "model", name, [{"value": n, "name": n} for n in models]),
        ]
        if self._reasons():
            effort = (session.request.reasoning or Reasoning()).effort
            values = [{"value": n, "name": n} for n in (AUTO, *map(str, Effort))]
            now = AUTO if effort is None else str(effort)
            found.append(_select("reasoning", "Reasoning", "thought_level", now, values))
        return found

    def _reasons(self) -> bool:
        info = self._session.opened.info
        return info is not None and bool(info.thinking)

    async def set(self, option: str, value: object) -> None:
        """Changes an option; an error for an unknown option or value."""
        known = {one["id"]: one for one in self.listed()}
        if option not in known:
            raise bad(f'unknown option "{option}"; options are {", ".join(known)}')
        values = [one["value"] for one in known[option]["options"]]
        if value not in values or not isinstance(value, str):
            raise bad(f'unknown value "{value}" of {option}')
        match option:
            case "mode":
                await self.set_mode(value)
            case "model":
                self.answering = ""
                if value != self._session.opened.name:
                    await self._session.change_model(value)
            case _:
                self._session.change_effort(None if value == AUTO else Effort(value))

    async def set_mode(self, mode: object) -> None:
        """Changes the approval mode, also while a turn runs."""
        if not isinstance(mode, str) or mode not in tuple(Mode):
            raise bad(f'unknown mode "{mode}"; modes are {", ".join(map(str, MODES))}')
        if mode != self._session.mode:
            await self._session.set_mode(Mode(mode))


def _mode_values() -> list[JsonObject]:
    return [
        {"value": str(mode), "name": name, "description": about}
        for mode, (name, about) in MODES.items()
    ]


def _select(id: str, name: str, category: str, now: str, values: list[JsonObject]) -> JsonObject:
    return {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": now,
        "options": values,
    }


async def models_of(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """The models that a session can change to."""
    return await asyncio.to_thread(usable_models, settings, environ)
