"""Repair of a conversation for its next reader: paired calls, accepted ids, no foreign seals."""

from toolwire.history.repairs import repair
from toolwire.history.rules import Change, HistoryRules, Repaired

__all__ = ["Change", "HistoryRules", "Repaired", "repair"]
