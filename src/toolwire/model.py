"""What a model is to everything that asks one: a callable from a request to a stream of events."""

from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from toolwire.events import ModelEvent
from toolwire.request import ModelRequest

Model: TypeAlias = Callable[[ModelRequest], AsyncIterator[ModelEvent]]
"""Retry, fallback, recording and the prompted tool styles are functions from `Model` to `Model`."""
