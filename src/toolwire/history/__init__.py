"""Repair of a conversation for its next reader: paired calls, accepted ids, no foreign seals."""

from toolwire.history.drafts import HistoryRules, Repaired
from toolwire.history.repairs import balance, repair

__all__ = ["HistoryRules", "Repaired", "balance", "repair"]
