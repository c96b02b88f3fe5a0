#!/usr/bin/env python3
"""Draws the pictures of the README and of the page of `diff` from real runs.

    .github/pictures.py [DIRECTORY]

PROGRAM    the program. Default: target/release/git-kustomize-localize
KUSTOMIZE  the kustomize that builds. Default: that on PATH

DIRECTORY is .github/pictures unless it is given. Everything happens in a temporary directory, with a local repository in
place of https://github.com/acme/bases, and with fixed dates: the same program draws the same pictures. That of `diff` is
drawn by Chromium, if there is one on PATH.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("PROGRAM", TOP / "target/release/git-kustomize-localize")).resolve()
COLUMNS = 100

# The colours of a terminal with a dark background, by the number that selects them.
COLORS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd"}

DEPLOYMENT = """apiVersion: v1
kind: ConfigMap
metadata:
  name: NAME
"""


WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: ghcr.io/acme/web:1.4.2
"""
DATA = """apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "KUSTOMIZE") if name in os.environ}
    date = "2026-01-01T00:00:00Z"
    person = {"NAME": "Alice", "EMAIL": "alice@example.com", "DATE": date}
    given = {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in person.items()}
    config = home / "gitconfig"
    config.write_text(f'[init]\n\tdefaultBranch = main\n[url "file://{home}/bases"]\n\tinsteadOf = https://github.com/acme/bases\n')
    return {
        **kept,
        **given,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "COLUMNS": str(COLUMNS),
    }


class Stage:
    """A repository to run commands in, and what the last ones have printed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = environment(home)
        self.work = self.repository("work")

    def repository(self, name: str) -> Path:
        place = self.home / name
        self.git(self.home, "init", "--quiet", name)
        return place

    def git(self, place: Path, *words: str) -> None:
        subprocess.run(["git", *words], cwd=place, env=self.environment, check=True)

    def commit(self, place: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git(place, "add", "--all")
        self.git(place, "commit", "--quiet", "--message", "Change")

    def run(self, *words: str) -> str:
        """Runs the program as it is run at a terminal, and returns the command with what it prints."""
        done = subprocess.run(
            [PROGRAM, *words, "--color", "always"],
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode > 1:
            sys.exit(f"{' '.join(words)}: {done.stdout}")
        shown = done.stdout.replace(" by a dead proxy", "")
        # Not every build of kustomize knows its version.
        shown = re.sub(r"kustomize/[^ ,)]*\)?(-[0-9a-f]{16})?, network", "kustomize/v5.8.1, network", shown)
        return f"\x1b[1m$ git kustomize-localize {' '.join(words)}\x1b[0m\n{shown}"


def spans(line: str) -> list[tuple[str, str]]:
    """Splits a line into pieces, each with its style."""
    pieces, style = [], {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            pieces.append((part, "".join(f' {name}="{value}"' for name, value in style.items())))
            continue
        for number in (int(one or 0) for one in code[1].split(";")):
            if number == 0:
                style = {}
            elif number == 1:
                style["font-weight"] = "bold"
            elif number == 2:
                style["opacity"] = "0.6"
            elif number in COLORS:
                style["fill"] = COLORS[number]
    return [(text, style) for text, style in pieces if text]


def wrapped(text: str) -> list[list[tuple[str, str]]]:
    """Breaks lines as a terminal does."""
    lines = []
    for line in text.rstrip("\n").split("\n"):
        row, column = [], 0
        for piece, style in spans(line):
            while piece:
                room = COLUMNS - column
                row.append((piece[:room], style))
                column += len(piece[:room])
                piece = piece[room:]
                if piece:
                    lines.append(row)
                    row, column = [], 0
        lines.append(row)
    return lines


def picture(text: str, title: str) -> str:
    lines = wrapped(text)
    wide, high = COLUMNS * 8.4 + 32, len(lines) * 19 + 28
    rows = []
    for number, row in enumerate(lines):
        parts = "".join(f"<tspan{style}>{html.escape(piece)}</tspan>" for piece, style in row)
        rows.append(f'<text x="16" y="{number * 19 + 30}">{parts}</text>\n')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" role="img">\n'
        f"<title>{html.escape(title)}</title>\n"
        '<rect width="100%" height="100%" rx="6" fill="#0d1117"/>\n'
        '<g fill="#e6edf3" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" '
        'xml:space="preserve">\n' + "".join(rows) + "</g>\n</svg>\n"
    )


def main() -> None:
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / ".github/pictures"
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        stage = Stage(Path(directory))
        bases = stage.repository("bases")
        stage.commit(bases, {"web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": DEPLOYMENT.replace("NAME", "web")})
        stage.git(bases, "tag", "v1.2.0")
        stage.commit(
            stage.work,
            {
                "base/kustomization.yaml": "resources:\n- settings.yaml\n",
                "base/settings.yaml": DEPLOYMENT.replace("NAME", "settings"),
                "apps/web/kustomization.yaml": "resources:\n- ../../base\n- https://github.com/acme/bases//web?ref=v1.2.0\n",
                "apps/api/kustomization.yaml": "resources:\n- ../../base\n",
            },
        )
        pictures = {"check": (stage.run("check"), "check finds a URL that is neither localized nor locked")}
        stage.run("lock")
        stage.commit(stage.work, {})
        pictures["localize"] = (stage.run("branch"), "the repository is committed to a branch, localized")
        pictures["tree"] = (stage.run("tree"), "what references what")
        for name, (text, title) in pictures.items():
            (to / f"{name}.svg").write_text(picture(text, title))
        if browser := shutil.which("chromium"):
            page(stage, browser, to / "diff.png")


def page(stage: Stage, browser: str, to: Path) -> None:
    """Draws the page of a change: side by side, as somebody sees it who has chosen that."""
    roots = {f"clusters/{name}/kustomization.yaml": "resources: [../../shop]\n" for name in ("dev", "stage", "prod")}
    shop = {"shop/kustomization.yaml": "resources: [web.yaml, data.yaml]\n", "shop/web.yaml": WEB, "shop/data.yaml": DATA}
    stage.commit(stage.work, roots | shop)
    (stage.work / "shop/kustomization.yaml").write_text("resources: [web.yaml]\n")
    (stage.work / "shop/web.yaml").write_text(WEB.replace("1.4.2", "2.0.0").replace("replicas: 2", "replicas: 3"))
    words = ["diff", "HEAD", "--format", "html"]
    shown = subprocess.run([PROGRAM, *words], cwd=stage.work, env=stage.environment, capture_output=True, text=True, check=True)
    file = stage.home / "diff.html"
    file.write_text(shown.stdout.replace(" checked>", ">").replace('id="split">', 'id="split" checked>'))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,980"]
    subprocess.run([browser, *options, f"--screenshot={to}", file.as_uri()], capture_output=True, check=True)


main()
