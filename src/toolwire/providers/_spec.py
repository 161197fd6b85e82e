"""What a provider entry says: dialect, address, credentials, quirks, each with its reason."""

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
    """Variables that hold it; the first one set wins."""
    header: str = "authorization"
    prefix: str = "Bearer "
    url: str = ""
    """Where a person gets one."""
    optional: bool = False
    """A local server: without a key nothing is sent."""
    login: Literal["", "openrouter"] = ""
    """A login in the browser that gives a key, for those who have none yet."""


class GoogleLogin(msgspec.Struct, frozen=True, kw_only=True, tag="google_login"):
    """Application default credentials, or a key for express mode."""

    env: tuple[str, ...] = ("GOOGLE_API_KEY",)
    scope: str = "https://www.googleapis.com/auth/cloud-platform"


class OAuth(msgspec.Struct, frozen=True, kw_only=True, tag="oauth"):
    """A person's own login. Off until the person configures it."""

    flow: Literal["code-assist", "copilot", "openrouter"]
    env: tuple[str, ...] = ()
    """Variables that hold a ready token."""
    terms: str = ""
    """What the vendor's terms say of use by other programs; shown before the first use."""


class NoAuth(msgspec.Struct, frozen=True, tag="no_auth"):
    """Nothing to show."""


Auth: TypeAlias = ApiKey | GoogleLogin | OAuth | NoAuth


class Placeholder(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an address that the user knows: a resource, a project, a location."""

    name: str
    env: tuple[str, ...]
    """Variables that hold it; the first one set wins."""
    default: str = ""
    """Empty: the user must say it."""


class ModelRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is different for some models of a provider."""

    pattern: str
    """Shell-style pattern on the model's name, lower case; the first rule that fits counts."""
    reason: str
    quirks: Quirks | None = None
    native_tools: bool | None = None
    leaked: tuple[str, ...] = ()
    """Text formats in which these models print calls instead of making them."""
    dialect: str = ""
    """These models answer in another of the provider's formats."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor: data."""

    name: str
    title: str
    dialect: str
    base_url: str
    """May hold `{resource}`, `{project}`, `{location}`, filled from settings or variables."""
    auth: Auth
    base_url_env: tuple[str, ...] = ()
    takes_origin: bool = False
    """The vendor's variables hold only a server, as its SDK takes them: the path of `base_url` is
    put after it.
    """
    placeholders: tuple[Placeholder, ...] = ()
    special_urls: tuple[tuple[str, str], ...] = ()
    """Addresses that do not follow the pattern: (`location=global`, address)."""
    other_dialects: tuple[tuple[str, str], ...] = ()
    """Formats the same account also answers in: (dialect, base address)."""
    quirks: Quirks = Quirks()
    reasons: tuple[tuple[str, str], ...] = ()
    """Why each quirk that is set is set: (quirk, reason). A test holds the two together."""
    rules: tuple[ModelRule, ...] = ()
    native_tools: bool = True
    """Whether native tool calls are known to work; the tool style `auto` asks this."""
    prompted_style: Literal["xml", "json"] = "xml"
    """The tool style `auto` takes where native calls are not known to work."""
    json_schema_output: bool = False
    """Whether the server takes a JSON schema or grammar for its output (constrained JSON style)."""
    headers: tuple[tuple[str, str], ...] = ()
    allow_insecure_http: bool = False
    """Its credentials may go unencrypted to another machine; only the user can say so."""
    default_model: str = ""
    models: tuple[str, ...] = ()
    """Names a user's own entry offers beside those of the catalogue."""
    docs: str = ""
    local: bool = False
    """Runs on this machine: reached without a key, never offered as a cloud."""
    in_process: bool = False
    """Runs inside this process, if its address is not set to another; loaded when first asked."""
    small: bool = False
    """Slow and simple: shown few tools in few words, and only so much of a result."""
    prepare: Callable[[HttpRequest], HttpRequest] | None = None
    """What data cannot say: signed addresses, token exchange."""

    def quirks_for(self, model: str) -> Quirks:
        """The quirks of one model: its rule's, else the provider's."""
        rule = self.rule_for(model)
        return rule.quirks if rule is not None and rule.quirks is not None else self.quirks

    def rule_for(self, model: str) -> ModelRule | None:
        """The first rule whose pattern fits."""
        name = model.lower()
        return next((rule for rule in self.rules if fnmatchcase(name, rule.pattern)), None)

    def speaking(self, dialect: str) -> "Provider":
        """The same account, asked in another format it answers in."""
        if dialect in ("", self.dialect):
            return self
        others = dict(self.other_dialects)
        if dialect not in others:
            raise UnknownName(f"dialect of {self.name}", dialect, (self.dialect, *others))
        url = others.pop(dialect)
        rest = ((self.dialect, self.base_url), *others.items())
        return msgspec.structs.replace(self, dialect=dialect, base_url=url, other_dialects=rest)

    def for_model(self, model: str) -> "Provider":
        """The same account in the format this model answers in."""
        rule = self.rule_for(model)
        return self.speaking(rule.dialect) if rule is not None else self


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one model."""

    provider: str
    id: str
    context: int = 0
    output: int = 0
    prices: Prices | None = None
    tools: bool = True
    images: bool = False
    images_in_results: bool = False
    thinking: bool = False
    dated: str = ""
    """The day the figures were taken."""
