"""The rule file on disk: read whole, and added to when a person answers "always"."""

from pathlib import Path

from toolwire.agent.rule_file import dump, load
from toolwire.agent.rules import Rule
from toolwire.errors import BadInput
from toolwire.storage.private_files import locked_briefly, write_private


def read_rules(file: Path) -> tuple[Rule, ...]:
    """The rules of a file; none if there is no file, an error if it cannot be read."""
    return load(_text(file), str(file))


def keep_rule(file: Path, rule: Rule) -> None:
    """Add a rule at the end of its file, if it is not there yet; what people wrote stays."""
    with locked_briefly(file):
        text = _text(file)
        before = load(text, str(file))
        if any(dump(each) == dump(rule) for each in before):
            return
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        added = f"{text}{gap}# answered: always\n{dump(rule)}"
        try:
            load(added, str(file))
        except BadInput as error:
            raise BadInput(
                f"cannot add a rule to {file}: write its rules as [[rule]] tables, "
                "not as a list in one line"
            ) from error
        write_private(file, added.encode())


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}; check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8; save it again as UTF-8") from error
