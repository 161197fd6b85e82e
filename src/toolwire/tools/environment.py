"""What a child process may see of our environment."""

import re
from collections.abc import Iterable, Mapping


def clean_environment(environ: Mapping[str, str], known_secrets: Iterable[str]) -> dict[str, str]:
    """The variables without those that look like a secret or hold one."""
    secrets = [secret for secret in known_secrets if len(secret) >= 6]
    return {
        name: value
        for name, value in environ.items()
        if not _secret_name(name)
        and not _SECRET_VALUE.search(value)
        and not any(secret in value for secret in secrets)
    }


_HARMLESS = re.compile(
    r"SSH_AUTH_SOCK|GPG_(TTY|AGENT_INFO)|XAUTHORITY|(?:SSL|CURL|NODE|REQUESTS|GIT)_.*(?:CERT|CERTS)"
    r"(?:_FILE|_DIR)?|GIT_AUTHOR_\w+|KEYMAP|(?:XDG|DESKTOP|GDM|DBUS)_\w+|SESSION_MANAGER"
)
_SECRET_WORDS = re.compile(
    r"(?:^|_)(?:\w*(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|CREDS|APIKEYS?)"
    r"|KEYS?|AUTH|AUTHORIZATION|PASS|PWD|PRIVATE|COOKIES?|BEARER|DSN|PAT)(?=_|\d*$)",
)
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:sk|pk|rk)-[\w-]{16,}|\bgh[pousr]_\w{20,}"
    r"|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bya29\.[\w-]{20,}|\bhf_\w{20,}|\bgsk_\w{20,}|\bxai-\w{20,}"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.|://[^/\s:@]*:[^/\s@]+@"
)


def _secret_name(name: str) -> bool:
    upper = name.upper()
    if upper in ("PWD", "OLDPWD") or _HARMLESS.fullmatch(upper):
        return False
    return _SECRET_WORDS.search(upper) is not None
