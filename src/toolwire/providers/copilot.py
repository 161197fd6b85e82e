"""GitHub Copilot. Chat with the headers its server requires; Codex models answer in Responses."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET
from toolwire.providers._spec import ModelRule, OAuth, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)
_THINKING = msgspec.structs.replace(_QUIRKS, sampling=False)

PROVIDER = Provider(
    name="copilot",
    title="GitHub Copilot",
    dialect="openai-chat",
    base_url="https://api.githubcopilot.com",
    other_dialects=(("openai-responses", "https://api.githubcopilot.com"),),
    auth=OAuth(
        flow="copilot",
        env=("GITHUB_COPILOT_TOKEN",),
        terms="GitHub offers this login to the editors it names; whether another program may use "
        "it is for you and GitHub's terms to settle. Off until you configure a client id.",
    ),
    headers=(
        ("Editor-Version", "toolwire/1"),
        ("Editor-Plugin-Version", "toolwire/1"),
    ),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=(
        ModelRule(
            pattern="*codex*",
            reason="offered only through Responses, and takes no sampling",
            quirks=_THINKING,
            dialect="openai-responses",
        ),
        ModelRule(pattern="gpt-[56]*", reason="takes no sampling", quirks=_THINKING),
        ModelRule(pattern="o[134]*", reason="takes no sampling", quirks=_THINKING),
    ),
    default_model="gpt-4.1",
    docs="https://docs.github.com/copilot",
)
