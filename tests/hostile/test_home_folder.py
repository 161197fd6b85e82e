from pathlib import Path
from typing import Any

import pytest

from tests.hostile.checkouts import Checkout
from toolwire.policy import Mode

RUN_LATER = (
    *(".bash_aliases", ".zlogin", ".xprofile", ".config/environment.d/a.conf", ".profile"),
    *(".config/autostart/a.desktop", ".config/systemd/user/a.service", ".local/bin/ls", "bin/ls"),
    *(".local/share/applications/a.desktop", "Library/LaunchAgents/a.plist", ".ssh/rc"),
    *(".vimrc", ".config/nvim/init.lua", ".pythonrc", ".npmrc", ".cargo/config.toml", ".inputrc"),
    *(".config/pip/pip.conf", ".vscode/tasks.json", ".local/lib/python3.11/site-packages/a.pth"),
    *(
        ".gnupg/gpg.conf",
        ".config/fish/conf.d/a.fish",
        ".oh-my-zsh/custom/a.zsh",
        ".selected_editor",
    ),
    *("Desktop/a.desktop", ".anything", ".git/hooks/pre-commit", ".config/Code/User/settings.json"),
)
PATCH = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.AUTO_EDIT, Mode.YOLO])
@pytest.mark.parametrize("root", ["home", "."])
def test_nothing_that_runs_later_is_written_in_a_home_folder_unasked(
    root: str, mode: Mode, tmp_path: Path
) -> None:
    place = Checkout(tmp_path, root=root)
    for name in RUN_LATER:
        path = str(place.home / name)
        calls: dict[str, dict[str, Any]] = {
            "write_file": {"file_path": path, "content": "x"},
            "replace": {"file_path": path, "instruction": "", "old_string": "", "new_string": "x"},
            "apply_patch": {"input": PATCH.format(path)},
        }
        for tool, arguments in calls.items():
            said = place.call(tool, mode, **arguments)
            assert said.startswith("Tool execution denied by policy."), (name, tool, said)
        assert not Path(path).exists()


def test_ordinary_files_of_a_home_folder_are_written_in_auto_edit(tmp_path: Path) -> None:
    place = Checkout(tmp_path, root="home")
    for name in ("notes.txt", "code/project/main.py", "code/.editorconfig"):
        place.call("write_file", Mode.AUTO_EDIT, file_path=str(place.home / name), content="x")
        assert (place.home / name).read_text() == "x"
