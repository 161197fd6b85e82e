"""Repair of a conversation for its next reader: paired calls, accepted ids, no foreign seals."""

from toolwire.history.drafts import HistoryRules, Repaired
from toolwire.history.repairs import repair

__all__ = ["HistoryRules", "Repaired", "repair"]
