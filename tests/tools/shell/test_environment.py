import pytest

from toolwire.tools.shell.environment import clean_environment

HARMLESS_LOOKING = (
    *("STRIPE_SK", "SLACK_WEBHOOK_URL", "ADMIN_PW", "AZURE_CONNECTION_STRING", "KEYS"),
    *("SUPABASE_SERVICE_ROLE", "DATABASE_URL", "MONGO_URI", "SENTRY", "PLAIN", "MY_LOGIN"),
)
SECRET_LOOKING = (
    *("OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
    *("GITHUB_TOKEN", "GH_PAT", "DB_PASSWORD", "MYSQL_PWD", "PGPASSWORD", "SENTRY_DSN", "token"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "npm_config__authToken", "SESSION_COOKIE", "TOKEN1"),
)
RUN_PROGRAMS = (
    *("BASH_ENV", "ENV", "BASH_FUNC_ls%%", "LD_PRELOAD", "LD_LIBRARY_PATH", "PROMPT_COMMAND"),
    *("SHELLOPTS", "BASHOPTS", "PS4", "IFS", "CDPATH", "GLOBIGNORE", "PYTHONSTARTUP", "PYTHONPATH"),
    *("PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB"),
    *("LESSOPEN", "LESSCLOSE", "LESS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "MANPAGER"),
    *("GIT_PAGER", "GIT_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_DIR"),
    *("RUSTC_WRAPPER", "CARGO_BUILD_RUSTC", "GOFLAGS", "MAKEFLAGS", "JAVA_TOOL_OPTIONS", "_"),
    *("RIPGREP_CONFIG_PATH", "SSH_ASKPASS", "DYLD_INSERT_LIBRARIES", "GCONV_PATH", "TAR_OPTIONS"),
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "DOCKER_HOST"),
)
EVERYDAY = (
    *("PATH", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE"),
    *("TERM", "TZ", "TMPDIR", "GPG_TTY", "XDG_CONFIG_HOME", "XDG_SESSION_ID", "DISPLAY", "CI"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("NVM_DIR", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "https_proxy"),
    *("GIT_AUTHOR_NAME", "GITHUB_ACTIONS", "NO_COLOR", "PYTHONUNBUFFERED"),
)


@pytest.mark.parametrize("name", [*HARMLESS_LOOKING, *SECRET_LOOKING, *RUN_PROGRAMS])
def test_a_variable_that_is_not_listed_is_not_inherited(name: str) -> None:
    assert clean_environment({name: "x", "PATH": "/bin"}, ()) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", EVERYDAY)
def test_an_everyday_variable_stays(name: str) -> None:
    assert clean_environment({name: "/some/value"}, ("secret-of-ours",)) == {name: "/some/value"}


@pytest.mark.parametrize("name", [*HARMLESS_LOOKING, *SECRET_LOOKING, *RUN_PROGRAMS])
def test_a_variable_that_the_user_names_is_inherited(name: str) -> None:
    assert clean_environment({name: "x", "OTHER": "y"}, (), (name,)) == {name: "x"}


@pytest.mark.parametrize(
    "value",
    [
        "sk-" + "a1B2" * 8,
        "sk_live_" + "a1B2" * 6,
        "ghp_" + "a" * 36,
        "github_pat_" + "a" * 40,
        "glpat-" + "a" * 20,
        "xoxb-" + "1" * 20,
        "AIza" + "b" * 35,
        "AKIA" + "A" * 16,
        "ya29." + "c" * 30,
        "eyJhbGciOiJ9.eyJzdWIiOiIx.sig",
        "-----BEGIN RSA PRIVATE KEY-----\nx",
        "http://user:hunter2@proxy:3128",
        "http://token@proxy:3128",
        "https://index/simple?api_key=hunter22",
        "prefix secret-of-ours suffix",
    ],
)
def test_a_listed_variable_that_holds_a_secret_is_left_out(value: str) -> None:
    given = {"HTTPS_PROXY": value, "MYAPP_A": value, "GOPROXY": "https://host:8080/a@b"}
    kept = {"GOPROXY": "https://host:8080/a@b"}
    assert clean_environment(given, ("secret-of-ours", ""), ("MYAPP_*",)) == kept


def test_a_prefix_names_what_begins_so_and_a_star_alone_nothing() -> None:
    given = {"MYAPP_A": "1", "MYAPP": "2", "OTHER": "3"}
    assert clean_environment(given, (), ("MYAPP_*", "*")) == {"MYAPP_A": "1"}


def test_an_exact_name_does_not_pass_on_a_credential_of_ours() -> None:
    given = {"DB_PASSWORD": "hunter22", "MY_KEY": "secret-of-ours"}
    assert clean_environment(given, ("secret-of-ours",), tuple(given)) == {
        "DB_PASSWORD": "hunter22"
    }
