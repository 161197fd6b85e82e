"""Files that need their own ruling, and the one filter for what tools show. Protected files are
credentials, the agent's files, and files that programs run automatically. Files that are denied,
protected or need approval are left out of listings.
"""

import os
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

import msgspec

from toolwire.storage.paths import state_paths
from toolwire.tools.files.paths import real
from toolwire.tools.spec import ToolContext, ToolOutput, Workspace


def _names(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


SECRET_NAMES = _names(
    """
    .env .envrc .netrc _netrc .npmrc .pypirc .pgpass .git-credentials .htpasswd .my.cnf .vault-token
    .dockercfg .boto .s3cfg .rediscli_auth credentials.json oauth_creds.json mcp-oauth-tokens.json
    application_default_credentials.json id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
    """
)
SECRET_ENDS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx", ".ppk")
SAMPLE_ENDS = (".example", ".sample", ".template", ".dist")
HOME_SECRETS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".config/gh",
    ".config/gcloud",
    ".local/share/keyrings",
    "library/keychains",
)
"""Folders of credentials, from the home folder."""

AGENT_FOLDERS = frozenset({".toolwire", ".gemini"})
STARTUP_FOLDERS = _names(
    """
    .vscode .vscode-server .idea .fleet .zed .husky .githooks .mvn .bundle .claude .cursor .codex
    .windsurf .roo .kilocode .continue .direnv .agents .opencode
    """
)
"""Folders that an editor, another agent, a hook runner or a build tool loads from a project."""
STARTUP_BELOW = (
    (".cargo", "config"),
    (".cargo", "config.toml"),
    (".yarn", "plugins"),
    (".yarn", "releases"),
    (".config", "autostart"),
    (".config", "environment.d"),
    (".config", "fish"),
    (".config", "git"),
    (".config", "systemd"),
)
"""The same as two names in a row."""
STARTUP_NAMES = _names(
    """
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .inputrc
    .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .shrc
    .xprofile .xinitrc .xsession .xsessionrc .xserverrc .pam_environment .screenrc .tmux.conf
    .gitconfig .hgrc .vimrc .gvimrc .exrc .nvimrc .nvim.lua .emacs .dir-locals.el .dir-locals-2.el
    .gdbinit .lldbinit .rprofile .renviron .ghci .irbrc .pryrc .pythonrc .sqliterc .psqlrc .curlrc
    .wgetrc .gemrc .condarc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs .npmrc .pythonstartup
    .mcp.json .autoenv .autoenv.zsh sitecustomize.py
    usercustomize.py pip.conf pip.ini .pdbrc .perldb .valgrindrc .mailcap .lesskey
    authorized_keys
    """
)
STARTUP_ENDS = (".pth", ".code-workspace")

_ENDS = (*SECRET_ENDS, *STARTUP_ENDS)

HOME_PROGRAMS = ("bin", "sbin", "library", "appdata", "applications")
"""Folders of the home folder that are not hidden, but run from."""
HOME_HARMLESS = (
    *(".trash/", ".thumbnails/", ".cache/thumbnails/", ".local/share/trash/", ".github/"),
    *(".gitignore/", ".gitattributes/", ".editorconfig/", ".dockerignore/"),
    *(".geminiignore/", ".toolwireignore/"),
)
"""Hidden files that nothing runs, also in a project that is a home folder."""
SYSTEM_FOLDERS = (
    *("/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt"),
    *("/var/spool", "/var/lib", "/library", "/system", "/applications"),
)
ANY_HOMES = ("/", "/home", "/users", "/root")
"""Folders that contain home folders."""


GIT_FILES = "git's own files"
CREDENTIALS = "credentials"
STARTUP = "files that programs run or load by themselves"
HOME_FILES = "files that a shell or a desktop runs"
HIDDEN_IN_HOME = "hidden files of a home folder"
PROGRAMS = "programs and files of the system"
_PAIRED = frozenset(first for first, _ in STARTUP_BELOW)
_NO_FILE = "\0"
"""A name that no file has, and no list."""
READ_FREELY = frozenset({GIT_FILES, STARTUP, PROGRAMS})
"""Reasons that protect a file from being written, not from being read."""


class UnusualNames(msgspec.Struct, frozen=True):
    """Picks names that may be protected in a folder that is not: a superset of those that are."""

    listed: frozenset[str]

    def __call__(self, names: list[str]) -> list[str]:
        """Few or none of most lists: one look at all names together finds that out."""
        together = "/".join(names)
        if not together.isascii():
            return names
        together = together.lower()
        lowered = together.split("/")
        if (
            not (together.startswith(".") or "/." in together)
            and self.listed.isdisjoint(lowered)
            and not [one for one in lowered if one.endswith(_ENDS)]
        ):
            return []
        return [
            name
            for name, low in zip(names, lowered, strict=True)
            if low.startswith(".") or low in self.listed or low.endswith(_ENDS)
        ]


class Protection:
    """Recognises protected files by their path."""

    def __init__(self, workspace: Workspace, environ: Mapping[str, str] = {}) -> None:
        self._directory = workspace.roots[0]
        own = state_paths(environ)
        homes = _both_names(workspace.home)
        self._temp = _beginnings((workspace.temp,))
        self._config = _beginnings(_both_names(own.config, own.credentials))
        self._records = _beginnings(_both_names(own.sessions, own.state))
        self._homes = _beginnings(homes)
        self._secrets = tuple(f"{home}{one}/" for home in self._homes for one in HOME_SECRETS)
        roots = _beginnings(real(root) or root for root in workspace.roots)
        broad = [root for root in roots if _holds_a_home(root, self._homes)]
        self._narrow = tuple(root for root in roots if root not in broad)
        self._programs = _programs(environ, self._homes) if broad else ()
        own_paths = (*self._temp, *self._config, *self._records, *self._homes, *self._secrets)
        last = {os.path.basename(path.rstrip(f"{os.sep}/")) for path in own_paths}  # noqa: PTH119
        paired = {below for _, below in STARTUP_BELOW}
        self.unusual = UnusualNames(SECRET_NAMES | STARTUP_NAMES | last | paired)

    def why(self, path: str | Path) -> str:
        """Why a file needs a ruling of its own; empty if it does not. Links are not followed."""
        # Some file systems ignore case.
        whole = _plain(f"{path}{os.sep}")
        parts = whole.split(os.sep)  # noqa: PTH206 - called for thousands of files
        if ".git" in parts:
            return GIT_FILES
        if not whole.startswith(self._temp):
            own = self._own(whole, parts)
            if own:
                return own
        if self._is_secret(whole, parts[-2]):
            return CREDENTIALS
        if whole.startswith(self._temp):
            return ""
        return self._startup(whole, parts[-2]) or self._broad(whole)

    def why_followed(self, path: str | Path) -> str:
        """Why a path, or the file that its links lead to, needs a ruling of its own."""
        given = Path(os.path.abspath(os.path.join(self._directory, path)))  # noqa: PTH100, PTH118
        found = real(given)
        return self.why(given) or (self.why(found) if found and found != given else "")

    def hides(self, path: str | Path) -> str:
        """Why reading a file needs a ruling; files that programs merely run may be read."""
        why = self.why(path)
        return "" if why in READ_FREELY else why

    def hidden_among(self, folder: str, names: list[str]) -> list[str]:
        """Those of the files in a folder whose reading needs a ruling.

        Most folders are ordinary, and so are the names in them: one look at all of them together.
        """
        above = folder.rstrip(os.sep) + os.sep
        if not self.hides(above + _NO_FILE):
            names = self.unusual(names)
        return [name for name in names if self.hides(above + name)]

    def _own(self, whole: str, parts: list[str]) -> str:
        if not AGENT_FOLDERS.isdisjoint(parts) or whole.startswith(self._config):
            return "configuration of the agent"
        return "records of the agent" if whole.startswith(self._records) else ""

    def _is_secret(self, whole: str, name: str) -> bool:
        if name in SECRET_NAMES or name.endswith(SECRET_ENDS):
            return True
        if name.startswith(".env.") and not name.endswith(SAMPLE_ENDS):
            return True
        return whole.startswith(self._secrets)

    def _startup(self, whole: str, name: str) -> str:
        if name in STARTUP_NAMES or name.endswith(STARTUP_ENDS):
            in_home = whole.removesuffix(f"{name}/") in self._homes
            return HOME_FILES if in_home else STARTUP
        # The user chose to work there, whatever the folders above are called.
        root = next((one for one in self._narrow if whole.startswith(one)), "")
        parts = whole.removeprefix(root).split(os.sep)  # noqa: PTH206 - called for thousands of files
        if not STARTUP_FOLDERS.isdisjoint(parts):
            return STARTUP
        if _PAIRED.isdisjoint(parts):
            return ""
        if any(pair in STARTUP_BELOW for pair in pairwise(parts)):
            return HOME_FILES if whole.startswith(self._homes) else STARTUP
        return ""

    def _broad(self, whole: str) -> str:
        """What a folder that contains a home, or is outside of every root, protects besides it."""
        if whole.startswith(self._narrow):
            return ""
        home = next((one for one in self._homes if whole.startswith(one)), _some_home(whole))
        below = whole.removeprefix(home) if home else ""
        if below.startswith(".") and not below.startswith(HOME_HARMLESS):
            return HIDDEN_IN_HOME
        if below.split("/", 1)[0] in HOME_PROGRAMS or below.endswith(".desktop/"):
            return PROGRAMS
        return PROGRAMS if whole.startswith(self._programs) else ""


def _holds_a_home(root: str, homes: tuple[str, ...]) -> bool:
    return root.rstrip("/") in ("", *ANY_HOMES) or any(one.startswith(root) for one in homes)


def _some_home(whole: str) -> str:
    """The user's home folder that contains a path; empty if none does."""
    if whole.startswith("/root/"):
        return "/root/"
    first, second, third, *_ = (*whole.split("/"), "", "", "")[1:4]
    return f"/{first}/{second}/" if first in ("home", "users") and second and third else ""


def _programs(environ: Mapping[str, str], homes: tuple[str, ...]) -> tuple[str, ...]:
    """Folders that programs are run from: those of the system, and those on the search path."""
    path = (one for one in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(one))  # noqa: PTH117
    own = tuple(one for one in _beginnings(map(Path, path)) if one.startswith(homes))
    return (*(f"{folder}/" for folder in SYSTEM_FOLDERS), *own)


def _both_names(*folders: Path) -> tuple[Path, ...]:
    return tuple(each for one in folders for each in dict.fromkeys((one, real(one) or one)))


def _beginnings(folders: Iterable[Path]) -> tuple[str, ...]:
    return tuple(_plain(f"{str(folder).rstrip(os.sep)}{os.sep}") for folder in folders)


def _plain(path: str) -> str:
    """A path normalised for all file systems: case folded, composed, no invisible characters."""
    if path.isascii():
        return path.lower()
    letters = unicodedata.normalize("NFKC", path).casefold()
    return "".join(each for each in letters if unicodedata.category(each) != "Cf")


_MOST_NAMED = 20


class Hidden(StrEnum):
    """Why a file is left out of a result; the values are those of a rule's decision."""

    NO = ""
    PROTECTED = "protected"
    DENIED = "deny"
    ASKED = "ask"


class Visibility:
    """Which of the files that one tool finds may be shown."""

    def __init__(self, context: ToolContext, tool: str, *, names_only: bool = False) -> None:
        """`names_only`: the tool shows names, and those of protected files are not secret."""
        self._tool = tool
        self._restricts = context.restricts
        self._protection = None if names_only else Protection(context.workspace, context.environ)

    @property
    def unusual(self) -> "UnusualNames | None":
        """Picks the names that may be hidden in most folders; None if any may be, or none is."""
        return None if self._restricts or self._protection is None else self._protection.unusual

    @property
    def everything(self) -> bool:
        """Whether nothing at all is hidden."""
        return self._restricts is None and self._protection is None

    def hides(self, path: str | Path, *, named: bool = False) -> Hidden:
        """Why an absolute path is left out; one that the call names was ruled on already.

        Links are not followed: check the path and its target.
        """
        ruled = Hidden.NO
        if self._restricts is not None:
            ruled = Hidden(self._restricts(self._tool, str(path)))
        if ruled is Hidden.DENIED:
            return ruled
        if named:
            return Hidden.NO
        if ruled is Hidden.NO and self._protection is not None and self._protection.hides(path):
            return Hidden.PROTECTED
        return ruled

    def among(self, folder: str, names: list[str]) -> dict[str, Hidden]:
        """Why files of a folder, given by its absolute path, are left out."""
        if self._restricts is None and self._protection is not None:
            return dict.fromkeys(self._protection.hidden_among(folder, names), Hidden.PROTECTED)
        if self.everything:
            return {}
        above = folder.rstrip(os.sep) + os.sep
        found = {name: self.hides(above + name) for name in names}
        return {name: why for name, why in found.items() if why}


class LeftOut:
    """Counts the files that a result lacks, for a note of one line."""

    def __init__(self, *, names: bool = True) -> None:
        """`names`: whether files are named where a rule does not deny them."""
        self._names = names
        self._found: dict[Hidden, dict[str, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, why: Hidden, name: str) -> bool:
        """Count a file that is hidden for a reason; False if there is none."""
        if why is Hidden.NO:
            return False
        self._found.setdefault(why, {})[name] = None
        return True

    def join(self, other: "LeftOut", prefix: str = "") -> None:
        """Count what another result lacks as well."""
        for why, names in other._found.items():
            for name in names:
                self.add(why, prefix + name)

    def line(self, verb: str = "Left out") -> str:
        """How many files were left out and why; empty if none were."""
        if not self._found:
            return ""
        counts = [self._counted(why) for why in _WORDS if why in self._found]
        askable = self._names and any(why is not Hidden.DENIED for why in self._found)
        way = " Name one in read_file, which asks, if you need it." if askable else ""
        return f"{verb}: {', '.join(counts)}.{way}"

    def _counted(self, why: Hidden) -> str:
        found = self._found[why]
        listed = self._names and why is not Hidden.DENIED
        return f"{len(found)} {_WORDS[why]}" + (f" ({_listed(found)})" if listed else "")


def with_line(output: ToolOutput, line: str) -> ToolOutput:
    """The same output with a line for the model at its end."""
    if not line:
        return output
    return msgspec.structs.replace(output, text=f"{output.text}\n{line}")


_WORDS = {
    Hidden.PROTECTED: "protected",
    Hidden.DENIED: "denied by a rule",
    Hidden.ASKED: "that a rule asks about",
}


def _listed(names: dict[str, None]) -> str:
    shown = sorted(names)[:_MOST_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
