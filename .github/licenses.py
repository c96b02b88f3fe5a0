#!/usr/bin/env python3
"""Prints the licenses of everything that is linked into the program for TARGET.

    .github/licenses.py TARGET

Fails where a crate has neither a license text nor a license in its manifest.
"""

import json
import subprocess
import sys
from pathlib import Path

# Each is a license of the crate or a notice that has to come along.
NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def linked(target: str) -> list[dict]:
    """Returns the packages that are compiled into the program, but not those that only build it or its tests."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.check_output(command))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    found, todo = set(), [root]
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    return sorted((packages[id] for id in found), key=lambda package: (package["name"], package["version"]))


def main(target: str) -> None:
    texts: dict[str, list[str]] = {}
    print("The program contains these crates.\n")
    for package in linked(target):
        directory = Path(package["manifest_path"]).parent
        crate = f"{package['name']} {package['version']}"
        files = sorted(path for path in directory.iterdir() if path.is_file() and path.name.lower().startswith(NAMES))
        if not files and not package["license"]:
            sys.exit(f"error: {crate} has no license")
        print(f"{crate}: {package['license'] or 'see below'}")
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(f"{crate} ({path.name})")
    for text, crates in texts.items():
        print(f"\n{'=' * 80}\n" + "\n".join(crates) + f"\n{'-' * 80}\n{text}")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    main(sys.argv[1])
