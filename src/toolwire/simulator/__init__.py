"""A scripted model behind real HTTP in every wire format: for tests, demos and offline work."""

from toolwire.acceptance.limits import Demands
from toolwire.simulator.received import Received
from toolwire.simulator.script import (
    Answering,
    Call,
    Decline,
    Fault,
    Question,
    Reply,
    Say,
    Script,
    Show,
    Think,
    load,
    parse,
    refused,
    replies,
    reply,
)
from toolwire.simulator.server import Simulator

__all__ = [
    "Answering",
    "Call",
    "Decline",
    "Demands",
    "Fault",
    "Question",
    "Received",
    "Reply",
    "Say",
    "Script",
    "Show",
    "Simulator",
    "Think",
    "load",
    "parse",
    "refused",
    "replies",
    "reply",
]
