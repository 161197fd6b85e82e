"""The list of ordinary commands and the workspace they are written for."""

import gzip
import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

import msgspec

Label: TypeAlias = Literal["read", "outside", "other", "either"]


class Ordinary(msgspec.Struct, frozen=True, kw_only=True):
    """One command of the list."""

    label: Label
    command: str


def ordinary_commands(workspace: str) -> tuple[Ordinary, ...]:
    """All commands of `ordinary.txt`, for a workspace at that path."""
    entries: list[Ordinary] = []
    for line in Path(__file__).with_name("ordinary.txt").read_text("utf-8").splitlines():
        if not line or line.startswith("# "):
            continue
        label, text = line.split("\t", 1)
        text = text.replace("{workspace}", workspace)
        if label:
            assert label in get_args(Label), line
            entries.append(Ordinary(label=cast(Label, label), command=text))
        else:
            last = entries.pop()
            entries.append(Ordinary(label=last.label, command=f"{last.command}\n{text}"))
    return tuple(entries)


_FILES = {
    "README.md": "# Shop\n\nA small shop.\n\n## Install\n\nnpm install\n\n## Usage\n\nsee docs\n",
    "CHANGELOG.md": "# Changes\n\n## v1.0\n\n- first release\n",
    "LICENSE": "Apache License\n",
    "Makefile": "build:\n\ttsc -p .\n\ntest:\n\tnpm test\n",
    "Dockerfile": "FROM node:20\nCOPY . .\n",
    "docker-compose.yml": "services:\n  web:\n    build: .\n",
    "package.json": '{"name": "shop", "version": "1.0.3", "scripts": {"build": "tsc", "test": '
    '"jest"}, "dependencies": {"react": "^18"}, "devDependencies": {"jest": "^29"}}\n',
    "package-lock.json": '{"lockfileVersion": 3}\n',
    "tsconfig.json": '{"compilerOptions": {"strict": true}}\n',
    "pyproject.toml": '[project]\nname = "shop"\n',
    "requirements.txt": "requests==2.31\nflask\nflask\n",
    ".gitignore": "node_modules/\n.env\n",
    ".eslintrc.json": '{"root": true}\n',
    ".github/workflows/ci.yml": "name: ci\njobs:\n  test:\n    steps:\n      - node-version: 20\n",
    "src/index.ts": 'import { app } from "./app";\napp();\n',
    "src/app.ts": 'import React, { useState } from "react";\nexport function app() {\n'
    '  // TODO: foo\n  console.log("bar", process.env.NODE_ENV);\n}\n' + "// line\n" * 30,
    "src/utils/format.ts": "export const format = (x: number) => x.toFixed(2);\n",
    "src/utils/date.ts": "export function today() {\n  return new Date();\n}\n",
    "src/components/Button.tsx": 'export const Button = () => "Button";\n',
    "src/components/Modal.tsx": 'export const Modal = () => "Modal";\n',
    "src/api/client.ts": "export function createClient() {}\nexport interface Client {}\n",
    "src/api/routes.ts": 'router.get("/users", getUser(1));\n',
    "lib/__init__.py": "",
    "lib/parser.py": '"""Parser."""\n\nimport re\n\n\ndef parse(text):\n    words = text.split()\n'
    "    return words\n" + "# note\n" * 60,
    "lib/models.py": "class User:\n    id = 0\n\n\nclass Order:\n    id = 0\n",
    "lib/config.py": "    DEBUG = False\n",
    "lib/core/engine.py": "class Engine:\n    pass\n",
    "tests/test_parser.py": "def test_parse():\n    assert True\n",
    "tests/test_models.py": "def test_models():\n    assert True\n",
    "tests/unit/format.test.ts": 'describe("format", () => {});\n',
    "docs/guide.md": "# Guide\n\nThe old way is deprecated.\n",
    "docs/api.md": "# API\n",
    "scripts/build.sh": "#!/bin/sh\nnpm run build\n",
    "scripts/deploy.sh": "#!/bin/sh\nnpm run deploy\n",
    "config/settings.yaml": "# settings\nport: 3000\nname: shop\n",
    "config/default.json": '{"port": 3000, "debug": false}\n',
    "data/users.json": '[{"id": 1, "name": "Ada", "active": true}, {"id": 2, "name": "Bob"}]\n',
    "data/sales.csv": "day,region,amount\n1,north,20\n2,south,30\n3,north,5\n",
    "data/events.jsonl": '{"type": "login"}\n{"type": "logout"}\n{"type": "login"}\n',
    "logs/app.log": "10:01 web INFO started\n10:02 web ERROR failed 12\n10:03 db INFO ready\n",
    "logs/error.log": "10:02 web ERROR failed 12\n",
    "db/migrations/001_init.sql": "create table users (id integer);\n",
    "node_modules/react/package.json": '{"name": "react", "version": "18.2.0"}\n',
    "node_modules/lodash/package.json": '{"name": "lodash", "version": "4.17.21"}\n',
}


def build_workspace(root: Path) -> None:
    """A small project in two languages with a git history."""
    for name, text in _FILES.items():
        _write(root / name, text)
    (root / "logs/old.log.gz").write_bytes(gzip.compress(b"09:00 web ERROR old\n", mtime=0))
    _archive(root / "logs/archive.tar.gz")
    with zipfile.ZipFile(root / "data/export.zip", "w") as bundle:
        bundle.writestr("export/a.txt", "a\n")
    _git(root, "init", "-q", "-b", "main")
    _git(root, "remote", "add", "origin", "git@git.example.com:shop/shop.git")
    for step in ("first version", "fix: totals", "add routes"):
        _append(root / "README.md", f"\n{step}\n")
        _append(root / "lib/parser.py", f"# {step}\n")
        _append(root / "src/app.ts", f"// {step}\n")
        _git(root, "add", "-A")
        _git(root, "commit", "-q", "-m", step)
    _git(root, "tag", "v1.0.0", "HEAD~1")
    _git(root, "checkout", "-q", "-b", "feature/login")
    _append(root / "lib/models.py", "# login\n")
    _git(root, "commit", "-q", "-am", "add login")
    _git(root, "checkout", "-q", "main")
    _append(root / "src/index.ts", "// stashed\n")
    _git(root, "stash", "-q")
    _append(root / "src/index.ts", "// changed\n")
    _write(root / ".env", "API_KEY=sk-ordinary-0123456789\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def _archive(path: Path) -> None:
    with tarfile.open(path, "w:gz") as bundle:
        entry = tarfile.TarInfo("archive/a.log")
        entry.size = 4
        bundle.addfile(entry, io.BytesIO(b"old\n"))


def _git(root: Path, *arguments: str) -> None:
    person = {"NAME": "Ada", "EMAIL": "ada@example.com", "DATE": "2024-05-01T10:00:00Z"}
    environ = {
        f"GIT_{who}_{key}": value
        for who in ("AUTHOR", "COMMITTER")
        for key, value in person.items()
    }
    subprocess.run(
        ["git", "-c", "gc.auto=0", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(root.parent), **environ},
    )
