"""Choice of the tool style for a provider and a model, with its reason."""

from enum import StrEnum

import msgspec

from toolwire.errors import UnknownName
from toolwire.providers._spec import ModelInfo, Provider


class ToolStyle(StrEnum):
    """How tools are offered and calls are read."""

    AUTO = "auto"
    """By provider and model; never the style of a `StyleChoice`."""
    NATIVE = "native"
    XML = "xml"
    JSON = "json"


class StyleChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A style, the reason for it, and a warning, usually empty."""

    style: ToolStyle
    reason: str
    warning: str = ""


def choose(
    provider: Provider, model: str, setting: str = ToolStyle.AUTO, *, info: ModelInfo | None = None
) -> StyleChoice:
    """The setting, else the style stored for the model, else the one known for it or its provider,
    else a prompted one, usually xml.
    """
    if setting != ToolStyle.AUTO:
        return _explicit(provider, model, setting, info)
    if info is not None and info.tool_style not in ("", ToolStyle.AUTO):
        stored = _explicit(provider, model, info.tool_style, info)
        return msgspec.structs.replace(stored, reason=f"{stored.style} is stored for {info.id}")
    if not model:
        return StyleChoice(
            style=ToolStyle.XML, reason="no model is named; xml works with every model"
        )
    native, reason = _native(provider, model, info)
    style = ToolStyle.NATIVE if native else ToolStyle(provider.prompted_style)
    return StyleChoice(style=style, reason=reason)


def from_kilocode(word: str | None) -> str:
    """Our setting for a KiloCode tool style; its "JSON" is native calls."""
    name = (word or "").strip().lower()
    settings = {"": str(ToolStyle.AUTO), "xml": str(ToolStyle.XML), "json": str(ToolStyle.NATIVE)}
    if name not in settings:
        raise UnknownName("KiloCode tool style", name, ("xml", "json"))
    return settings[name]


def _explicit(provider: Provider, model: str, setting: str, info: ModelInfo | None) -> StyleChoice:
    try:
        style = ToolStyle(setting)
    except ValueError:
        raise UnknownName("tool style", setting, tuple(ToolStyle)) from None
    warning = ""
    if style is ToolStyle.NATIVE:
        native, reason = _native(provider, model, info)
        warning = "" if native else f"native tool calls may not work: {reason}"
    elif style is ToolStyle.JSON and not provider.json_schema_output:
        warning = (
            f"{provider.name} is not known to take a schema for its output; "
            "the model may not keep to the format"
        )
    return StyleChoice(style=style, reason=f"the setting says {style}", warning=warning)


def _native(provider: Provider, model: str, info: ModelInfo | None) -> tuple[bool, str]:
    """Whether native calls are known to work, and how that is known."""
    rule = provider.rule_for(model)
    if rule is not None and rule.native_tools is not None:
        return rule.native_tools, f"{provider.name} {rule.pattern}: {rule.reason}"
    if info is not None and not info.tools:
        return False, f"{info.id} has no native tool calls"
    if provider.native_tools:
        return True, f"native tool calls are known to work with {provider.name}"
    return False, f"native tool calls are not known to work with {provider.name}"
