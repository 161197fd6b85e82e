"""Names of files that hold secrets, or that a program runs or loads without being asked."""


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
    .windsurf .roo .kilocode .continue .direnv
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

HOME_PROGRAMS = ("bin", "sbin", "library", "appdata", "applications")
"""Folders of the home folder that are not hidden, but run from."""
HOME_HARMLESS = (
    *(".trash/", ".thumbnails/", ".cache/thumbnails/", ".local/share/trash/", ".github/"),
    *(".gitignore/", ".gitattributes/", ".editorconfig/", ".dockerignore/"),
    *(".geminiignore/", ".toolwireignore/"),
)
"""Hidden files that nothing runs: those of a project that happens to be a home folder, too."""
SYSTEM_FOLDERS = (
    *("/etc", "/boot", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt"),
    *("/var/spool", "/var/lib", "/library", "/system", "/applications"),
)
ANY_HOMES = ("/", "/home", "/users", "/root")
"""Folders that hold homes."""
