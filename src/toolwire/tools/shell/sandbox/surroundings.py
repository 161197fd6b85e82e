"""What a fork server found or made around itself; standard library only."""


class Surroundings:
    """The namespaces a watchdog was started in."""

    def __init__(
        self,
        *,
        contained: bool = False,
        network: int = -1,
        store: str = "",
        copies: dict[str, str] | None = None,
    ) -> None:
        self.contained = contained
        """The processes have a namespace of their own."""
        self.network = network
        """An empty network namespace to join; -1 where there is none."""
        self.store = store
        """Where changes to the copies are; commands must not see it."""
        self.copies = copies or {}
        """Private copies by the folder they stand for."""
