"""Provider entries: dialect, address, credentials, and quirks with reasons."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.errors import UnknownName
from toolwire.request import HttpRequest


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, tag="api_key"):
    """A key in a header."""

    env: tuple[str, ...]
    """Variables that contain it; the first one set is used."""
    header: str = "authorization"
    prefix: str = "Bearer "
    url: str = ""
    """Where to get one."""
    optional: bool = False
    """Optional, for local servers: without a key nothing is sent."""
    login: Literal["", "openrouter"] = ""
    """A browser login that returns a key."""


class GoogleLogin(msgspec.Struct, frozen=True, kw_only=True, tag="google_login"):
    """Application default credentials, or a key for express mode."""

    env: tuple[str, ...] = ("GOOGLE_API_KEY",)
    scope: str = "https://www.googleapis.com/auth/cloud-platform"


class OAuth(msgspec.Struct, frozen=True, kw_only=True, tag="oauth"):
    """A personal login. Off until the user configures it."""

    flow: Literal["code-assist", "copilot", "openrouter"]
    env: tuple[str, ...] = ()
    """Variables that contain a token."""
    terms: str = ""
    """The vendor's terms for other programs; shown before the first use."""


class NoAuth(msgspec.Struct, frozen=True, tag="no_auth"):
    """No credentials."""


Auth: TypeAlias = ApiKey | GoogleLogin | OAuth | NoAuth


class Placeholder(msgspec.Struct, frozen=True, kw_only=True):
    """A placeholder in an address: a resource, a project, a location."""

    name: str
    env: tuple[str, ...]
    """Variables that contain it; the first one set is used."""
    default: str = ""
    """Empty: the user must set it."""


class ModelRule(msgspec.Struct, frozen=True, kw_only=True):
    """Differences of some models of a provider."""

    pattern: str
    """Shell-style pattern on the model's name, lower case; the first match applies."""
    reason: str
    quirks: Quirks | None = None
    native_tools: bool | None = None
    leaked: tuple[str, ...] = ()
    """Text formats in which these models print calls."""
    dialect: str = ""
    """These models answer in another of the provider's formats."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor: data."""

    name: str
    title: str
    dialect: str
    base_url: str
    """May contain `{resource}`, `{project}`, `{location}`, filled from settings or variables."""
    auth: Auth
    base_url_env: tuple[str, ...] = ()
    takes_origin: bool = False
    """The vendor's variables contain only a server, as in its SDK: `base_url`'s path is added."""
    placeholders: tuple[Placeholder, ...] = ()
    special_urls: tuple[tuple[str, str], ...] = ()
    """Addresses that do not follow the pattern: (`location=global`, address)."""
    other_dialects: tuple[tuple[str, str], ...] = ()
    """Other formats of the same account: (dialect, base address)."""
    quirks: Quirks = Quirks()
    reasons: tuple[tuple[str, str], ...] = ()
    """The reason of each quirk that is set: (quirk, reason). A test checks that none is missing."""
    rules: tuple[ModelRule, ...] = ()
    native_tools: bool = True
    """Whether native tool calls are known to work; used by the tool style `auto`."""
    prompted_style: Literal["xml", "json"] = "xml"
    """The tool style that `auto` uses where native calls are not known to work."""
    json_schema_output: bool = False
    """Whether the server accepts a JSON schema for its output (constrained JSON style)."""
    schema_beside_tools: bool = True
    """Whether it accepts one while tools are offered. A grammar of llama.cpp or vLLM also holds the
    calls to it, so that none can be made; Groq and Cerebras reject the combination.
    """
    faithful: bool = False
    """The format's own maker runs the server: it knows every member, and its answers need no
    repair.
    """
    headers: tuple[tuple[str, str], ...] = ()
    allow_insecure_http: bool = False
    """Its credentials may be sent unencrypted to another machine; only the user can set it."""
    default_model: str = ""
    own_models: tuple[str, ...] = ()
    """Shell-style patterns of names that only this vendor's own models have."""
    models: tuple[str, ...] = ()
    """Models of a user's entry besides those of the catalogue."""
    docs: str = ""
    local: bool = False
    """Runs on this machine: needs no key."""
    in_process: bool = False
    """Runs inside this process, if its address is not set to another; loaded on first use."""
    small: bool = False
    """Slow and simple: gets few tools, short descriptions and shortened results."""
    prepare: Callable[[HttpRequest], HttpRequest] | None = None
    """For what data cannot express: signed addresses, token exchange."""

    def quirks_for(self, model: str) -> Quirks:
        """Returns the quirks of a model: its rule's, else the provider's."""
        rule = self.rule_for(model)
        return rule.quirks if rule is not None and rule.quirks is not None else self.quirks

    def rule_for(self, model: str) -> ModelRule | None:
        """Returns the first rule whose pattern matches."""
        name = model.lower()
        return next((rule for rule in self.rules if fnmatchcase(name, rule.pattern)), None)

    def with_dialect(self, dialect: str) -> "Provider":
        """Returns the same account in another of its formats."""
        if dialect in ("", self.dialect):
            return self
        others = dict(self.other_dialects)
        if dialect not in others:
            raise UnknownName(f"dialect of {self.name}", dialect, (self.dialect, *others))
        url = others.pop(dialect)
        rest = ((self.dialect, self.base_url), *others.items())
        return msgspec.structs.replace(self, dialect=dialect, base_url=url, other_dialects=rest)

    def for_model(self, model: str) -> "Provider":
        """Returns the same account in this model's format."""
        rule = self.rule_for(model)
        return self.with_dialect(rule.dialect) if rule is not None else self


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a model, independent of the provider."""

    context: int = 0
    output: int = 0
    prices: Prices | None = None
    tools: bool = True
    images: bool = False
    images_in_results: bool = False
    thinking: bool = False
    tool_style: Literal["", "native", "xml", "json", "auto"] = ""
    """The tool style that the user stored for it, in place of the one known for it."""
    dated: str = ""
    """The day the figures were taken."""


class ModelInfo(ModelFacts, frozen=True, kw_only=True):
    """Facts about one model of a provider."""

    provider: str
    id: str
