"""Writes docs/providers.md: `python -m toolwire.providers.document > docs/providers.md`."""

import sys
from collections.abc import Iterable

from toolwire import providers
from toolwire.providers import catalogue
from toolwire.providers._spec import ApiKey, ModelInfo, OAuth, Provider
from toolwire.providers.addresses import variables
from toolwire.providers.describe import changed, key_variables, way_in, written

_HEAD = """\
# Providers

This page is written by `python -m toolwire.providers.document`; a test holds it to the code.

A model is named `provider/model`, for example `anthropic/claude-sonnet-5` or
`openrouter/deepseek/deepseek-v4-pro`. `toolwire providers` lists the providers and which key is
set, `toolwire providers NAME` says everything of one, `toolwire models` lists the known models.

`openai` and `azure` are asked through Responses, where thinking survives from call to call. For
the chat format use a provider of your own that says `extends = "openai"` and
`dialect = "openai-chat"`.

Prices and sizes were gathered from public lists of different age. They serve for estimates; the
vendor's own page is right. A figure that was not certain is left out.

## Addresses
`--base-url`, else the vendor's usual variable, else `TOOLWIRE_<PROVIDER>_BASE_URL`, else the
provider's own. An address is written as that vendor's SDK takes it: with `/v1` for the OpenAI
formats, only the server for Anthropic, Gemini and Ollama.

## Your own
In `config.toml`:

```toml
[providers.mine]
dialect = "openai-chat"
base_url = "https://llm.example.com/v1"
key_env = "MINE_API_KEY"          # or a list; leave out for a server without keys
models = ["large", "small"]       # offered by `toolwire models`

[providers.mine.headers]
X-Team = "wires"

[providers.mine.quirks]
max_tokens_field = "max_completion_tokens"
tool_choices = ["auto", "none"]

[providers.openai-chat]           # another entry, changed in what it says
extends = "openai"
dialect = "openai-chat"

[models."mine/large"]
context = 131072
prices = { input = 0.5, output = 1.5 }
```

Also known: `key_header`, `key_prefix`, `title`, `docs`, `default_model`, `native_tools`,
`json_schema_output`, `local`, `allow_insecure_http`. An unknown setting is an error. A built-in
name can only be used by an entry that says `extends`, so that nothing is replaced in silence. An
entry with an address of its own never inherits a key: name its `key_env`. A project's own settings
cannot describe providers, or a cloned project could send your keys elsewhere.

A credential is sent over https, or over http to this machine: the address that the host resolves
to has to be loopback, whatever its name. To another machine over http it is refused before
anything is sent, unless the entry says `allow_insecure_http = true`, or the setting of that name
(`TOOLWIRE_ALLOW_INSECURE_HTTP=1`) allows it for all. A server without a key needs neither.

A package can offer a provider through the entry point group `toolwire.providers`: the name, and a
`Provider` or a function that returns one. It is loaded when its name is used. Settings win over
built-in providers, those over packages.

## The list
"""


def document() -> str:
    """The page, whole."""
    entries = [providers.get(name) for name in providers.names()]
    parts = [_HEAD, _table(entries)]
    parts += [_section(entry) for entry in entries]
    return "\n".join(parts)


def _table(entries: list[Provider]) -> str:
    lines = ["| provider | dialect | key | models known |", "|---|---|---|---|"]
    for entry in entries:
        keys = ", ".join(f"`{name}`" for name in key_variables(entry.auth)) or "–"
        known = len(catalogue.models(entry.name))
        lines.append(f"| [{entry.name}](#{entry.name}) | {entry.dialect} | {keys} | {known} |")
    return "\n".join(lines) + "\n"


def _section(entry: Provider) -> str:
    lines = [f"## {entry.name}", f"{entry.title}. {_facts(entry)}", ""]
    lines += [f"- Address: `{entry.base_url}`; moved by {_words(variables(entry))}."]
    for blank in entry.placeholders:
        usual = f", else `{blank.default}`" if blank.default else ""
        lines.append(f"- `{{{blank.name}}}` from {_words(blank.env)}{usual}.")
    lines.append(f"- Credentials: {_credentials(entry)}.")
    if entry.other_dialects:
        lines.append(f"- Also answers in {_words(name for name, _ in entry.other_dialects)}.")
    reasons = dict(entry.reasons)
    for name in changed(entry.quirks):
        value = written(getattr(entry.quirks, name)) or "none"
        lines.append(f"- `{name}`: {value}. {_sentence(reasons[name])}")
    lines += [f"- Models `{rule.pattern}`: {rule.reason}." for rule in entry.rules]
    models = catalogue.models(entry.name)
    if models:
        lines += ["", *_models(models)]
    return "\n".join(lines) + "\n"


def _facts(entry: Provider) -> str:
    facts = [f"Format {entry.dialect}"]
    if entry.local:
        facts.append("on this machine")
    if not entry.native_tools:
        facts.append("tool calls through the prompt unless a rule below says otherwise")
    if entry.default_model:
        facts.append(f"default model `{entry.default_model}`")
    return "; ".join(facts) + f". [Documentation]({entry.docs.removeprefix('docs/')})"


def _credentials(entry: Provider) -> str:
    said = way_in(entry.auth)
    if key_variables(entry.auth):
        said += f", from {_words(key_variables(entry.auth))}"
    if isinstance(entry.auth, ApiKey) and entry.auth.url:
        said += f"; [get one]({entry.auth.url})"
    if isinstance(entry.auth, OAuth) and entry.auth.terms:
        said += f". {entry.auth.terms.removesuffix('.')}"
    return said


def _models(models: tuple[ModelInfo, ...]) -> list[str]:
    lines = [
        f"Gathered {models[0].dated}; US dollars per million tokens, a dash is not known.",
        "",
        "| model | context | output | price in | price out | cached | tools | images | thinking |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for info in models:
        prices = info.prices
        figures = (prices.input, prices.output, prices.cache_read) if prices else (None,) * 3
        cells = [
            f"`{info.id}`",
            *(str(size or "–") for size in (info.context, info.output)),
            *("–" if figure is None else f"{figure:g}" for figure in figures),
            *("yes" if able else "no" for able in (info.tools, info.images, info.thinking)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _words(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    sys.stdout.write(document())
