"""What is recorded: spans, log records and measures, as values."""

from typing import Literal, TypeAlias

import msgspec

Value: TypeAlias = str | bool | int | float | tuple[str, ...]
Attributes: TypeAlias = dict[str, Value]
Kind: TypeAlias = Literal["internal", "client", "server"]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Something that took time."""

    name: str
    kind: Kind
    trace: int
    id: int
    parent: int = 0
    start: int
    """Nanoseconds since 1970."""
    end: int
    attributes: Attributes
    error: str = ""
    """Type of the error; empty if it went well."""


class LogRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened."""

    name: str
    at: int
    trace: int = 0
    span: int = 0
    attributes: Attributes
    body: str = ""


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a metric."""

    name: str
    unit: str
    value: float
    at: int
    attributes: Attributes
    counter: bool = False
    """A sum that grows; else a histogram."""


Signal: TypeAlias = Span | LogRecord | Measure
