from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.workspaces import context_in, git, write
from toolwire.context.mentions import BEGINS, ENDS, Mentioned, mentions, user_message
from toolwire.messages import Media, MediaKind, Message, Text
from toolwire.tools.spec import ToolContext

PNG = b"\x89PNG\r\n\x1a\n"


class Desk:
    def __init__(self, folder: Path) -> None:
        self.context: ToolContext = context_in(folder, seen={})
        self.root = self.context.workspace.roots[0]
        self.outside = folder / "outside"

    def say(self, prompt: str, *, piped: str = "", allowed: Path | None = None) -> Mentioned:
        return user_message(prompt, self.context, piped=piped, allows=lambda path: path == allowed)

    def parts(self, prompt: str) -> list[object]:
        """The parts between the two lines that frame them."""
        said = self.say(prompt)
        first, begins, *between, ends = said.message.parts
        assert (first, begins, ends) == (Text(prompt), Text(BEGINS), Text(ENDS))
        return list(between)

    def shown(self, **files: str) -> list[Text]:
        """What files named `a_txt` for a.txt look like."""
        parts: list[Text] = []
        for name, text in files.items():
            path = self.root / name.replace("__", "/").replace("_", ".")
            parts += [Text(f"\nContent from @{path}:\n"), Text(text)]
        return parts


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path.resolve())


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("look at @a.txt", ["a.txt"]),
        ("@a.txt @b/c.py", ["a.txt", "b/c.py"]),
        ("@a.txt, @b.txt; and (@c.txt)!", ["a.txt", "b.txt", "c.txt"]),
        ("see @a.txt. Then", ["a.txt"]),
        ("@a.txt twice @a.txt", ["a.txt"]),
        (r"@my\ file.txt", ["my file.txt"]),
        (r"@pages/\[id\].tsx", ["pages/[id].tsx"]),
        ('@"my file, (1).txt" x', ["my file, (1).txt"]),
        ("@src/**/*.py", ["src/**/*.py"]),
        ("@Screen\u202fshot.png", ["Screen\u202fshot.png"]),
        ("看@a.txt", ["a.txt"]),
        ("line\n@a.txt\nline", ["a.txt"]),
        ("mail a@b.c or x.y+z@b.c", []),
        (r"\@a.txt", []),
        ("a @ b", []),
        ("@", []),
        ("user/@scope x@@y", []),
    ],
)
def test_mentions_are_found(prompt: str, found: list[str]):
    assert mentions(prompt) == found


@given(st.text(alphabet='@a. \\"/[]\n', max_size=40))
def test_no_prompt_breaks_the_search(prompt: str):
    assert all(mentions(prompt))


def test_a_prompt_without_mentions_is_one_text(desk: Desk):
    assert desk.say("hello a@b.c") == Mentioned(
        message=Message(role="user", parts=(Text("hello a@b.c"),))
    )


def test_files_follow_the_prompt_in_the_order_of_their_paths(desk: Desk):
    write(desk.root / "b.txt", "\nB\n\n")
    write(desk.root / "a.txt", "A")
    said = desk.say("compare @b.txt with @a.txt")
    assert said.message.parts == (
        Text("compare @b.txt with @a.txt"),
        Text("\n--- Content from referenced files ---"),
        *desk.shown(a_txt="A", b_txt="B"),
        Text("\n--- End of content ---"),
    )
    assert said.files == (str(desk.root / "a.txt"), str(desk.root / "b.txt"))
    assert said.notices == ()


def test_absolute_and_dotted_paths_mean_the_same_file(desk: Desk):
    write(desk.root / "d/a.txt", "A")
    prompt = f"@{desk.root}/d/a.txt @./d/../d/a.txt"
    assert desk.parts(prompt) == desk.shown(d__a_txt="A")


@pytest.mark.parametrize(
    "prompt", ["'@a.txt'", "`@a.txt`:", "@a.txt: it", "**@a.txt**", "<@a.txt>"]
)
def test_signs_after_a_path_do_not_hide_the_file(desk: Desk, prompt: str):
    write(desk.root / "a.txt", "A")
    assert desk.parts(prompt) == desk.shown(a_txt="A")


@pytest.mark.parametrize(
    ("name", "kind", "mime"),
    [
        ("p.png", MediaKind.IMAGE, "image/png"),
        ("p.pdf", MediaKind.DOCUMENT, "application/pdf"),
        ("p.mp3", MediaKind.AUDIO, "audio/mpeg"),
    ],
)
def test_pictures_documents_and_sounds_are_sent_without_a_heading(
    desk: Desk, name: str, kind: MediaKind, mime: str
):
    write(desk.root / name, PNG)
    assert desk.parts(f"@{name}") == [Media.of_bytes(kind, mime, PNG)]


def test_a_directory_means_its_files_but_no_media(desk: Desk):
    git(desk.root)
    write(desk.root / ".gitignore", "*.log\n")
    for name in ("src/b.py", "src/a/x.py", "src/m.log", "src/node_modules/n.js", "src/.env"):
        write(desk.root / name, name)
    write(desk.root / "src/p.png", PNG)
    said = desk.say("@src/")
    assert list(said.message.parts[2:-1]) == desk.shown(
        src__a__x_py="src/a/x.py", src__b_py="src/b.py"
    )
    assert said.notices == (
        "@src/: pictures, documents and recordings were left out (1); "
        "name each one that should be sent",
    )


def test_a_pattern_means_the_files_that_fit(desk: Desk):
    for name in ("src/a.py", "src/d/b.py", "src/c.txt", "e.py"):
        write(desk.root / name, name)
    write(desk.root / "src/p.png", PNG)
    assert desk.parts("@src/**/*.py") == desk.shown(src__a_py="src/a.py", src__d__b_py="src/d/b.py")
    assert desk.parts("@src/*") == desk.shown(src__a_py="src/a.py", src__c_txt="src/c.txt")
    assert desk.parts("@src/*.png") == [Media.of_bytes(MediaKind.IMAGE, "image/png", PNG)]
    assert desk.say("@x/*.py").notices == ("@x/*.py was left as text: no file matches the pattern",)


def test_a_file_with_signs_of_a_pattern_in_its_name_is_that_file(desk: Desk):
    write(desk.root / "[a].txt", "A")
    write(desk.root / "a.txt", "other")
    path = desk.root / "[a].txt"
    assert desk.parts(r"@\[a\].txt") == [Text(f"\nContent from @{path}:\n"), Text("A")]


def test_a_missing_file_stays_text_and_is_reported(desk: Desk):
    assert desk.say("use @dataclass here") == Mentioned(
        message=Message(role="user", parts=(Text("use @dataclass here"),)),
        notices=("@dataclass was left as text: no such file",),
    )


def test_ignored_files_are_skipped_and_reported(desk: Desk):
    git(desk.root)
    write(desk.root / ".gitignore", "a.txt\nout/\n")
    write(desk.root / ".geminiignore", "b.txt\n")
    for name in ("a.txt", "b.txt", "out/c.txt"):
        write(desk.root / name, "x")
    said = desk.say("@a.txt @b.txt @out @out/c.txt")
    assert said.files == ()
    assert said.notices == (
        "@a.txt was left as text: it is ignored by git",
        "@b.txt was left as text: it is ignored by .geminiignore",
        "@out was left as text: it is ignored by git",
        "@out/c.txt was left as text: it is ignored by git",
    )


def test_git_may_have_no_say(desk: Desk):
    git(desk.root)
    write(desk.root / ".gitignore", "out/\n")
    write(desk.root / "out/c.txt", "C")
    said = user_message("@out @out/c.txt", desk.context, respect_git_ignore=False)
    assert list(said.message.parts[2:-1]) == desk.shown(out__c_txt="C")


def test_what_is_outside_is_refused_unless_it_is_allowed(desk: Desk):
    secret = write(desk.outside / "secret.txt", "S")
    (desk.root / "link.txt").symlink_to(secret)
    write(desk.context.workspace.home / "h.txt", "H")
    said = desk.say("@../outside/secret.txt @link.txt @~/h.txt @../outside")
    assert said.files == ()
    assert [notice.rpartition(": ")[2] for notice in said.notices] == [
        f"{secret} is outside of the workspace",
        f"{secret} is outside of the workspace",
        f"{desk.context.workspace.home / 'h.txt'} is outside of the workspace",
        f"{desk.outside} is outside of the workspace",
    ]
    said = desk.say("@../outside/secret.txt", allowed=secret)
    assert said.message.parts[2:-1] == (Text(f"\nContent from @{secret}:\n"), Text("S"))
    said = desk.say("@../outside", allowed=desk.outside)
    assert said.message.parts[2:-1] == (Text(f"\nContent from @{secret}:\n"), Text("S"))


def test_links_inside_a_folder_do_not_lead_out(desk: Desk):
    secret = write(desk.outside / "secret.txt", "S")
    write(desk.root / "d/a.txt", "A")
    (desk.root / "d/link.txt").symlink_to(secret)
    assert desk.parts("@d") == desk.shown(d__a_txt="A")


def test_long_files_are_cut_and_say_so(desk: Desk):
    write(desk.root / "a.txt", "\n".join(map(str, range(3000))))
    _, text = desk.parts("@a.txt")
    assert isinstance(text, Text)
    assert text.text.startswith("[WARNING: This file was truncated.")
    assert text.text.endswith("\n1999")


def test_files_that_cannot_be_shown_say_why(desk: Desk):
    write(desk.root / "a.bin", b"\0\1")
    write(desk.root / "empty.txt", "")
    with (desk.root / "huge.txt").open("wb") as file:
        file.truncate(21 << 20)
    said = desk.say("@a.bin @empty.txt @huge.txt")
    assert list(said.message.parts[2:-1]) == desk.shown(
        a_bin="Cannot display content of binary file: a.bin", empty_txt="(empty file)"
    )
    huge = desk.root / "huge.txt"
    assert said.notices == (
        f"{huge} was left out: File size exceeds the 20MB limit: {huge} (21.00MB)",
    )


def test_folders_add_no_more_than_a_model_can_read(desk: Desk):
    line = "x" * 1000 + "\n"
    for number in range(8):
        write(desk.root / f"d/{number}.txt", line * 1000)
    write(desk.root / "e.txt", "E")
    said = desk.say("@d @e.txt")
    assert len(said.files) == 6
    assert str(desk.root / "e.txt") in said.files
    assert said.notices == (
        "3 more files were left out: what is mentioned exceeds 4 MB; name the files that matter",
    )


def test_piped_text_comes_before_the_prompt_and_mentions_nothing(desk: Desk):
    write(desk.root / "a.txt", "A")
    said = desk.say("and flag", piped="piped @a.txt\n")
    assert said.message == Message(role="user", parts=(Text("piped @a.txt\n\n\nand flag"),))


def test_piped_text_alone_is_the_prompt(desk: Desk):
    write(desk.root / "a.txt", "A")
    said = desk.say("", piped="look at @a.txt\n")
    assert said.message.parts == (
        Text("look at @a.txt\n"),
        Text(BEGINS),
        *desk.shown(a_txt="A"),
        Text(ENDS),
    )


def test_what_was_mentioned_counts_as_seen(desk: Desk):
    write(desk.root / "a.txt", "A")
    desk.say("@a.txt")
    assert list(desk.context.seen) == [str(desk.root / "a.txt")]


def test_a_loop_of_links_is_not_a_file(desk: Desk):
    (desk.root / "loop").symlink_to("loop")
    assert desk.say("@loop").notices == ("@loop was left as text: it cannot be read",)


def test_a_text_full_of_signs_does_not_flood_the_screen(desk: Desk):
    notices = desk.say(" ".join(f"@x{number}" for number in range(500))).notices
    assert len(notices) == 21
    assert notices[-1] == "480 more notices about mentions"


def test_a_huge_folder_is_not_taken_whole(desk: Desk):
    for number in range(2002):
        write(desk.root / f"d/{number:04}", "x")
    said = desk.say("@d")
    assert len(said.files) == 2000
    assert said.notices == ("@d: only 2000 files are attached; name the folders that matter",)


def test_a_part_of_a_file_is_mentioned_by_its_lines(desk: Desk):
    write(desk.root / "a.txt", "".join(f"line {number}\n" for number in range(1, 31)))
    path = desk.root / "a.txt"
    assert desk.parts("see @a.txt:10-12 and @a.txt:3.") == [
        Text(f"\nContent from @{path}:10-12:\n"),
        Text("line 10\nline 11\nline 12"),
        Text(f"\nContent from @{path}:3-3:\n"),
        Text("line 3"),
    ]


def test_a_file_whose_name_looks_like_a_part_is_the_file(desk: Desk):
    write(desk.root / "a.txt", "one\ntwo\n")
    write(desk.root / "a.txt:2", "another")
    assert desk.parts("@a.txt:2") == [
        Text(f"\nContent from @{desk.root / 'a.txt:2'}:\n"),
        Text("another"),
    ]
