"""The system prompt: ours, composed from the texts beside this file, or the user's own."""

from toolwire.agent.prompt.choosing import SystemPrompt, chosen_prompt
from toolwire.agent.prompt.composing import PromptFacts, system_prompt

__all__ = ["PromptFacts", "SystemPrompt", "chosen_prompt", "system_prompt"]
