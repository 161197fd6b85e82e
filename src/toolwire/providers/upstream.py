"""An ad-hoc provider in one argument: `DIALECT=URL[,key=K][,model=M][,style=S]`."""

import re

import msgspec

from toolwire import dialects
from toolwire.errors import BadInput
from toolwire.providers._spec import ApiKey, Provider

NAME = "upstream"
_SHAPE = "DIALECT=URL[,key=K][,model=M][,style=S]"
_MEMBER = re.compile(r",(?=(?:key|model|style)=)")
_DEFAULT_MODEL = "default"
_HEADERS = {"anthropic-messages": ("x-api-key", ""), "gemini": ("x-goog-api-key", "")}


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed argument."""

    provider: Provider
    model: str = _DEFAULT_MODEL
    style: str = ""
    key: str = ""

    def __repr__(self) -> str:
        return f"Upstream({self.provider.dialect}, {self.provider.title}, {self.model})"


def read_upstream(text: str) -> Upstream:
    """Returns the provider at an address; only its own key is sent there."""
    name, equals, rest = text.partition("=")
    if not equals or not rest:
        raise BadInput(f"an upstream is written {_SHAPE}")
    dialects.get(name)
    url, *members = _MEMBER.split(rest)
    if "://" not in url:
        raise BadInput(f'"{_shown(url)}" is not an address; an upstream is written {_SHAPE}')
    said = dict(member.split("=", 1) for member in members)
    header, prefix = _HEADERS.get(name, ("authorization", "Bearer "))
    provider = Provider(
        name=NAME,
        title=_shown(url),
        dialect=name,
        base_url=url,
        auth=ApiKey(env=(), header=header, prefix=prefix, optional=True),
        json_schema_output=True,
        default_model=said.get("model", _DEFAULT_MODEL),
    )
    return Upstream(
        provider=provider,
        model=said.get("model", _DEFAULT_MODEL),
        style=said.get("style", ""),
        key=said.get("key", ""),
    )


def _shown(url: str) -> str:
    """Returns the address without login and query, which may contain secrets."""
    scheme, mark, rest = url.partition("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
