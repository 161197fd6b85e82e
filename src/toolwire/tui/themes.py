"""Colours of the terminal app: roles by name, so that no meaning is in a colour alone."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolwire.errors import UnknownName


class Theme(msgspec.Struct, frozen=True):
    """Styles by role, in rich's words; a role that is not named is plain."""

    name: str
    styles: Mapping[str, str]


_SHAPES = {
    "prompt": "bold",
    "heading": "bold",
    "strong": "bold",
    "emphasis": "italic",
    "strike": "strike",
    "dim": "dim",
    "thinking": "dim italic",
    "call": "bold",
    "program": "bold",
    "key": "bold",
    "added_word": "underline",
    "removed_word": "underline",
}


def _theme(name: str, **colours: str) -> Theme:
    styles = {
        role: f"{_SHAPES.get(role, '')} {colours.get(role, '')}".strip()
        for role in {*_SHAPES, *colours}
    }
    return Theme(name, MappingProxyType(styles))


# Only colours of the terminal's own palette: readable on any background.
_ANSI = _theme(
    "ansi",
    prompt="cyan",
    heading="blue",
    code="cyan",
    link="blue underline",
    added="green",
    removed="red",
    added_word="green",
    removed_word="red",
    done="green",
    failed="red",
    warning="yellow",
    question="yellow",
    program="magenta",
    keyword="magenta",
    string="green",
    number="cyan",
    comment="bright_black",
    names="blue",
)
_DARK = _theme(
    "dark",
    prompt="#7dcfff",
    heading="#7aa2f7",
    code="#9ece6a",
    link="#7aa2f7 underline",
    added="#9ece6a",
    removed="#f7768e",
    added_word="#c3e88d on #20402a",
    removed_word="#ff9eaf on #4a2027",
    done="#9ece6a",
    failed="#f7768e",
    warning="#e0af68",
    question="#e0af68",
    program="#bb9af7",
    keyword="#bb9af7",
    string="#9ece6a",
    number="#ff9e64",
    comment="#787c99",
    names="#7aa2f7",
)
_LIGHT = _theme(
    "light",
    prompt="#00618a",
    heading="#1d4fa8",
    code="#3a6b0f",
    link="#1d4fa8 underline",
    added="#2a6b1b",
    removed="#a3162b",
    added_word="#174d0c on #d5f0cb",
    removed_word="#7d0a1d on #fbd5da",
    done="#2a6b1b",
    failed="#a3162b",
    warning="#8a5a00",
    question="#8a5a00",
    program="#7a2fa8",
    keyword="#7a2fa8",
    string="#3a6b0f",
    number="#a34a00",
    comment="#6a6a6a",
    names="#1d4fa8",
)
# Blue and orange instead of green and red: different to every common kind of colour blindness.
_BLUE_ORANGE = {
    "added": "#56b4e9",
    "removed": "#e69f00",
    "added_word": "#9ad4f5 on #10384f",
    "removed_word": "#ffc34d on #4d3500",
    "done": "#56b4e9",
    "failed": "#e69f00",
    "string": "#56b4e9",
}
_BLUE_ORANGE_LIGHT = {
    "added": "#00558c",
    "removed": "#9a5200",
    "added_word": "#003c63 on #cfe8f7",
    "removed_word": "#6e3a00 on #fbe3c3",
    "done": "#00558c",
    "failed": "#9a5200",
    "string": "#00558c",
}


def _changed(base: Theme, name: str, colours: Mapping[str, str]) -> Theme:
    changed = {role: f"{_SHAPES.get(role, '')} {one}".strip() for role, one in colours.items()}
    return Theme(name, MappingProxyType({**base.styles, **changed}))


THEMES: Mapping[str, Theme] = MappingProxyType(
    {
        theme.name: theme
        for theme in (
            _ANSI,
            _DARK,
            _LIGHT,
            _changed(_DARK, "blue-orange", _BLUE_ORANGE),
            _changed(_LIGHT, "blue-orange-light", _BLUE_ORANGE_LIGHT),
            Theme("none", MappingProxyType({})),
        )
    }
)
"""`auto` chooses one of them."""


def theme_for(
    name: str, environ: Mapping[str, str], *, light: bool | None = None
) -> tuple[Theme, str]:
    """The theme, and rich's word for the colours that the terminal has; empty for none."""
    colours = colour_system(environ)
    if name != "auto":
        if name not in THEMES:
            raise UnknownName("theme", name, ("auto", *THEMES))
        return THEMES[name], colours if name != "none" else ""
    if not colours:
        return THEMES["none"], ""
    if light is None or colours == "standard":
        return THEMES["ansi"], colours
    return THEMES["light" if light else "dark"], colours


def colour_system(environ: Mapping[str, str]) -> str:
    """Rich's word for the colours that the environment allows; empty for none."""
    forced = environ.get("FORCE_COLOR", "") not in ("", "0")
    if environ.get("NO_COLOR") and not forced:
        return ""
    term = environ.get("TERM", "")
    if (term in ("", "dumb") or environ.get("CLICOLOR") == "0") and not forced:
        return ""
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256color" in term or "kitty" in term else "standard"
