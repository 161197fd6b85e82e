"""Making a conversation fit its next reader: calls paired with results, foreign seals gone, ids it
takes.
"""

from toolwire.history.repairs import repair
from toolwire.history.rules import Change, HistoryRules, Repaired

__all__ = ["Change", "HistoryRules", "Repaired", "repair"]
