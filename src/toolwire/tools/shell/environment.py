"""Programs we start, and the variables they get: an allowlist, not a filter."""

import base64
import ntpath
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_SHORTEST_SECRET = 6

_SESSION = """
    PATH HOME USER LOGNAME SHELL SHLVL PWD OLDPWD HOSTNAME LANG LANGUAGE TZ TMPDIR TMP TEMP
    TERM COLORTERM TERM_PROGRAM TERM_PROGRAM_VERSION COLUMNS LINES
    NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE DEBIAN_FRONTEND
    XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS XDG_CACHE_HOME XDG_STATE_HOME
    XDG_BIN_HOME XDG_RUNTIME_DIR XDG_CURRENT_DESKTOP XDG_SESSION_TYPE XDG_SESSION_ID
    DISPLAY WAYLAND_DISPLAY GPG_TTY KEYMAP WSL_DISTRO_NAME __CF_USER_TEXT_ENCODING
    TOOLWIRE_HOME
"""
_NETWORK = """
    HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
    http_proxy https_proxy ftp_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
    GIT_SSL_CAINFO GIT_SSL_CAPATH PIP_CERT CARGO_HTTP_CAINFO AWS_CA_BUNDLE NIX_SSL_CERT_FILE
"""
_TOOLCHAINS = """
    VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE CONDA_PYTHON_EXE
    CONDA_SHLVL MAMBA_ROOT_PREFIX MAMBA_EXE PYENV_ROOT PYENV_VERSION PYENV_SHELL PIPX_HOME
    PIPX_BIN_DIR POETRY_HOME POETRY_CACHE_DIR UV_CACHE_DIR UV_PYTHON UV_INDEX_URL UV_DEFAULT_INDEX
    PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_NO_INDEX PIP_TRUSTED_HOST PIP_CACHE_DIR
    PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED
    PYTHONPYCACHEPREFIX PYTHONWARNINGS
    NVM_DIR NVM_BIN NVM_INC NVM_CD_FLAGS NODE_ENV NODE_VERSION FNM_DIR FNM_MULTISHELL_PATH
    VOLTA_HOME PNPM_HOME YARN_CACHE_FOLDER COREPACK_HOME BUN_INSTALL DENO_DIR DENO_INSTALL
    NPM_CONFIG_REGISTRY NPM_CONFIG_CACHE NPM_CONFIG_PREFIX
    npm_config_registry npm_config_cache npm_config_prefix
    JAVA_HOME JDK_HOME M2_HOME MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME ANT_HOME SBT_HOME
    KOTLIN_HOME SCALA_HOME SDKMAN_DIR SDKMAN_CANDIDATES_DIR ANDROID_HOME ANDROID_SDK_ROOT
    ANDROID_NDK_HOME
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOOS GOARCH GOPROXY GOPRIVATE GONOPROXY GONOSUMDB
    GOSUMDB GO111MODULE CGO_ENABLED
    CARGO_HOME CARGO_TARGET_DIR CARGO_TERM_COLOR RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE
    RBENV_ROOT RBENV_VERSION GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE RAILS_ENV RACK_ENV
    COMPOSER_HOME DOTNET_ROOT DOTNET_CLI_HOME NUGET_PACKAGES ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
    HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PATH NIX_PROFILES IN_NIX_SHELL
    PKG_CONFIG_PATH CMAKE_PREFIX_PATH CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES ROCM_PATH
    DEVELOPER_DIR SDKROOT MACOSX_DEPLOYMENT_TARGET SOURCE_DATE_EPOCH
    GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
    GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT GIT_CEILING_DIRECTORIES
"""
_CONTINUOUS_INTEGRATION = """
    CI CONTINUOUS_INTEGRATION BUILD_NUMBER BUILDKITE CIRCLECI GITLAB_CI TRAVIS TF_BUILD
    GITHUB_ACTIONS GITHUB_WORKSPACE GITHUB_REPOSITORY GITHUB_REF GITHUB_REF_NAME GITHUB_SHA
    RUNNER_OS RUNNER_ARCH RUNNER_TEMP
"""
_WINDOWS = """
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT OS USERPROFILE USERNAME USERDOMAIN COMPUTERNAME
    APPDATA LOCALAPPDATA PROGRAMDATA ALLUSERSPROFILE PUBLIC HOMEDRIVE HOMEPATH
    PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES COMMONPROGRAMFILES(X86)
    COMMONPROGRAMW6432 NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE PROCESSOR_IDENTIFIER
    PROCESSOR_LEVEL PROCESSOR_REVISION PSMODULEPATH
"""
# Left out on purpose: whatever makes another program run its value (BASH_ENV, LD_PRELOAD,
# GIT_CONFIG_*, NODE_OPTIONS, PYTHONPATH, EDITOR, …) and sockets of agents that sign or decrypt.
_LISTED = f"{_SESSION}{_NETWORK}{_TOOLCHAINS}{_CONTINUOUS_INTEGRATION}"
_NAMES = frozenset((_LISTED + _WINDOWS if sys.platform == "win32" else _LISTED).split())
_LOCALE = re.compile(r"LC_[A-Z]+")

_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[pousr]_\w{20,}"
    r"|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bya29\.[\w-]{20,}|\bhf_\w{20,}|\bgsk_\w{20,}|\bxai-\w{20,}"
    r"|\bnpm_\w{30,}|\bpypi-[\w-]{30,}|\bwhsec_\w{16,}|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\."
    r"|://[^/?#\s@]+@|(?i:[?&;](?:[\w-]*(?:key|token|secret|password|sig|signature))=[^&\s]{6,})"
)


def clean_environment(
    environ: Mapping[str, str], known_secrets: Iterable[str], named: Iterable[str] = ()
) -> dict[str, str]:
    """The allowlisted variables and those named by the user, without values that are secrets.

    `named` are exact names or prefixes that end in `*`. An exact name is passed on even if its
    value looks like a secret, but never with a credential that this process uses itself.
    """
    secrets = [secret for secret in known_secrets if len(secret) >= _SHORTEST_SECRET]
    exact, prefixes = _entries(named)
    return {
        name: value
        for name, value in environ.items()
        if (name in exact or (_listed(name, prefixes) and not _SECRET_VALUE.search(value)))
        and not any(secret in value for secret in secrets)
    }


def _entries(named: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    entries = [entry.strip() for entry in named]
    prefixes = tuple(entry[:-1] for entry in entries if len(entry) > 1 and entry.endswith("*"))
    return frozenset(entries), prefixes


def _listed(name: str, prefixes: tuple[str, ...]) -> bool:
    return name in _NAMES or _LOCALE.fullmatch(name) is not None or name.startswith(prefixes)


_NOT_DUMPABLE = 4
_ENVIRONMENT_START, _ENVIRONMENT_END = 50, 51
"""Fields of `/proc/self/stat`, counting from 1."""
MARK = "TOOLWIRE_COMMAND"
"""A variable in the environment of every command."""


@cache
def hide_environment() -> None:
    """Blank every variable that children do not get; `os.environ` and `getenv` keep them all.

    Other processes of the user also lose the right to read our memory. Once a process.
    """
    if sys.platform != "linux":
        return
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it

        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = (int(fields[at - 3]) for at in (_ENVIRONMENT_START, _ENVIRONMENT_END))
        block = ctypes.string_at(start, end - start) if 0 < start < end else b""
        shown = {*clean_environment(os.environ, ()), MARK}
        # The C library still points into the block; this gives it copies of its own.
        for name, value in os.environ.items():
            os.putenv(name, value)
        at = start
        for entry in block.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if value and os.fsdecode(name) not in shown:
                ctypes.memset(at + len(name) + 1, 0, len(value))
            at += len(entry) + 1
        ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, ValueError, IndexError, AttributeError):
        return  # this system stores the environment elsewhere


PYTHON = (sys.executable, "-P", "-E")
"""This Python, without the current folder on its path and without variables that change it."""
NEUTRAL = os.environ.get("SYSTEMROOT", "C:\\") if sys.platform == "win32" else "/"
"""Working directory of programs that need none: no project can place a file there."""
_LOGINS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
# Hooks, monitors, pagers, helpers and remotes of a repository are programs of its own.
GIT_OPTIONS = (
    *("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "core.sshCommand=false"),
    *("-c", "core.askPass=", "-c", "credential.helper=", "-c", "diff.external="),
    *("-c", "submodule.recurse=false", "-c", "core.excludesFile=/dev/null"),
)
GIT_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # A missing object would be fetched from a remote, whose address may name a program.
    "GIT_ALLOW_PROTOCOL": "none",
}


def find_program(name: str, environ: Mapping[str, str], projects: Iterable[Path] = ()) -> str:
    """The program's absolute path outside of any project; empty if there is none."""
    folders = (environ.get("PATH") or os.environ.get("PATH") or os.defpath).split(os.pathsep)
    for folder in folders:
        # Links are followed only in folders that have the program.
        found = shutil.which(name, path=folder)
        if found and safe_folders([folder], projects):
            return found
    return ""


def safe_folders(folders: Iterable[str], projects: Iterable[Path] = ()) -> list[str]:
    """The absolute folders that are not inside a project, in the same order."""
    roots = [os.path.realpath(root) for root in projects]
    return [
        folder
        for folder in folders
        if os.path.isabs(folder)
        and not any(_inside(os.path.realpath(folder), root) for root in roots)
    ]


def _inside(path: str, root: str) -> bool:
    if sys.platform == "win32":
        path, root = path.lower(), root.lower()
    return root != os.sep and (path == root or path.startswith(f"{root}{os.sep}"))


def helper_environment(environ: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """Variables for our helper programs: no secrets except proxy logins and the named ones."""
    return clean_environment(environ, (), (*_LOGINS, *named))


_GIT_BASH = r"Git\bin\bash.exe"
_POWERSHELL = r"System32\WindowsPowerShell\v1.0\powershell.exe"


def windows_shells(environ: Mapping[str, str], git: str) -> tuple[str, ...]:
    """Where a shell may be on Windows, the best first: Git Bash, PowerShell 7, PowerShell 5.

    `git` is the path of git if it is known. `bash.exe` on the search path is not among them: the
    one in System32 runs in the Linux subsystem, with other files.
    """
    folders = [environ.get(name, "") for name in ("PROGRAMFILES", "PROGRAMW6432", "LOCALAPPDATA")]
    bashes = [
        ntpath.join(folder, more, _GIT_BASH)
        for folder, more in zip(folders, ("", "", "Programs"), strict=True)
        if folder
    ]
    parts = git.replace("/", "\\").lower().split("\\")
    if "cmd" in parts[-2:] or "bin" in parts[-2:]:
        bashes.insert(0, ntpath.join(ntpath.dirname(ntpath.dirname(git)), r"bin\bash.exe"))
    powershells = [
        *(ntpath.join(folders[0], r"PowerShell\7\pwsh.exe") for _ in folders[0][:1]),
        ntpath.join(environ.get("SYSTEMROOT", r"C:\Windows"), _POWERSHELL),
    ]
    return tuple(dict.fromkeys((*bashes, *powershells)))


def find_shell(environ: Mapping[str, str], projects: Iterable[Path] = ()) -> str:
    """The shell that runs commands, outside of any project; empty if there is none."""
    if sys.platform != "win32":
        return find_program("bash", environ, projects)
    roots = tuple(projects)
    shells = windows_shells(environ, find_program("git", environ, roots))
    folders = safe_folders(map(ntpath.dirname, shells), roots)
    return next(
        (one for one in shells if ntpath.dirname(one) in folders and os.path.isfile(one)), ""
    )


def is_powershell(program: str) -> bool:
    """Whether a shell reads PowerShell's language, not bash's."""
    return ntpath.basename(program).lower() in ("powershell.exe", "pwsh.exe")


def shell_words(program: str, command: str) -> tuple[str, ...]:
    """The command line by which a shell runs one command."""
    if is_powershell(program):
        # Encoded, since no quoting survives both the C runtime and PowerShell; the exit code of
        # the last program would else be lost.
        script = f"$ProgressPreference = 'SilentlyContinue'\n{command}\nexit $LASTEXITCODE"
        encoded = base64.b64encode(script.encode("utf-16-le", "replace")).decode()
        return (program, "-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded)
    # Two newlines: bash would otherwise turn itself into a last simple command, and a signal to
    # that would look like one to the shell.
    return (program, "-c", f"{command}\n\n")
