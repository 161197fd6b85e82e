"""Policy: whether a call may run."""

from enum import StrEnum


class Mode(StrEnum):
    """Approval mode: what runs without asking."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    YOLO = "yolo"
    PLAN = "plan"
