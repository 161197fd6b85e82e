"""Commands: processes, their watchdog, their output and their sandbox."""
