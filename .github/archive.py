#!/usr/bin/env python3
"""Packs DIRECTORY as FILE (.tar.gz or .zip): same files, same bytes, on any machine.

    .github/archive.py DIRECTORY FILE

Names are sorted, nobody owns them, and all have the time in SOURCE_DATE_EPOCH.
"""

import gzip
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def main(directory: Path, archive: Path) -> None:
    moment = int(os.environ["SOURCE_DATE_EPOCH"])
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    named = [(path.relative_to(directory.parent).as_posix(), path) for path in files]
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for name, path in named:
                entry = zipfile.ZipInfo(name, time.gmtime(moment)[:6])
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100000 | mode(path)) << 16
                packed.writestr(entry, path.read_bytes())
        return
    with open(archive, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=moment) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as packed:
            for name, path in named:
                entry = tarfile.TarInfo(name)
                entry.size = path.stat().st_size
                entry.mtime = moment
                entry.mode = mode(path)
                with open(path, "rb") as file:
                    packed.addfile(entry, file)


def mode(path: Path) -> int:
    program = path.name.startswith("git-kustomize-localize") and path.suffix in ("", ".exe")
    return 0o755 if program else 0o644


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
