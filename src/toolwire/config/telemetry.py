"""The settings of telemetry."""

from typing import Annotated, Literal

import msgspec

from toolwire.setting import setting


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[telemetry]` table of the configuration."""

    enabled: Annotated[bool, setting("Send telemetry to `telemetry.endpoint`.")] = False
    endpoint: Annotated[
        str, setting("OTLP address; if not set, the variables of OpenTelemetry decide.")
    ] = ""
    protocol: Annotated[Literal["http/protobuf", "grpc"], setting("Protocol of the address.")] = (
        "http/protobuf"
    )
    outfile: Annotated[
        str, setting("File that gets all of it, one line of OTLP JSON each time.", file=True)
    ] = ""
    content: Annotated[
        Literal["none", "spans", "events", "both"],
        setting("Where prompts, answers and arguments are included."),
    ] = "none"
    gemini_events: Annotated[bool, setting("Also send the log records of gemini-cli.")] = False
    prompts: Annotated[bool, setting("Include prompts in the log records of gemini-cli.")] = False

    @property
    def active(self) -> bool:
        """Whether anything is recorded."""
        return self.enabled or bool(self.outfile)
