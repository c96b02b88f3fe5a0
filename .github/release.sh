#!/usr/bin/env bash
# Builds what a release ships into DIRECTORY, from a clean checkout:
#
#   .github/release.sh DIRECTORY [TARGET...]
#
# TARGET is a target triple, or `source`. Default: the musl target of this machine, and the source.
#
#   *-linux-musl    archive, wheel (runs on every Linux), .deb, .rpm, SBOM
#   *-windows-*     zip, wheel
#   *-apple-darwin  archive, wheel
#   source          source distribution of the wheel
#
# Needs cargo with the targets, and .github/release-tools.txt on PATH. GENERATOR is a program that writes the manual
# pages, where the one that was built does not run on this machine.
set -euo pipefail

fail() {
  echo "error: $1" >&2
  exit 2
}

[[ $# -gt 0 ]] || fail 'no directory'$'\n''usage: .github/release.sh DIRECTORY [TARGET...]'
mkdir -p "$1"
to=$(cd "$1" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=git-kustomize-localize
python=$(command -v python3 || command -v python) || fail 'python3 is not on PATH'
for tool in cargo git maturin; do
  command -v "$tool" >/dev/null ||
    fail "$tool is not on PATH"$'\n''hint: pip install --require-hashes -r .github/release-tools.txt'
done
changed=$(git status --porcelain)
[[ -z $changed ]] || fail 'the checkout is not clean:'$'\n'"$changed"

field() {
  cargo metadata --locked --no-deps --format-version 1 |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["packages"][0][sys.argv[1]])' "$1"
}
VERSION=$(field version)
REPOSITORY=$(field repository)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION REPOSITORY SOURCE_DATE_EPOCH
compiled=${CARGO_TARGET_DIR:-$PWD/target}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022

# Makes the wheel of a target, and with it the program: one build for all that is shipped of a target.
build() {
  local target=$1 options=()
  case $target in
    *-linux-musl) options=(--zig --compatibility musllinux_1_1) ;;
    *-windows-gnu) options=(--zig) ;;
  esac
  maturin build --locked --profile dist --target "$target" --target-dir "$compiled" --out "$scratch/wheels" \
    ${options[@]+"${options[@]}"}
  if [[ $target == *-linux-musl ]]; then
    # It is static, so that the C library of the machine does not matter.
    local machine=${target%%-*}
    "$python" -m wheel tags --remove --platform-tag "manylinux2014_$machine.musllinux_1_1_$machine" \
      "$scratch/wheels/"*"$machine.whl"
  fi
}

# Packs program, documentation, completions and licenses.
archive() {
  local target=$1 program=$2 generator=$3 root=$scratch/$name-$1 suffix=.tar.gz shell
  [[ $target != *-windows-* ]] || suffix=.zip
  mkdir -p "$root/man" "$root/completions"
  cp "$program" README.md LICENSE-APACHE LICENSE-MIT "$root"
  cp "$scratch/licenses.txt" "$root/THIRD-PARTY-LICENSES.txt"
  "$generator" generate man "$root/man"
  for shell in bash fish zsh; do
    "$generator" generate completion "$shell" >"$root/completions/$name.$shell"
  done
  "$python" .github/archive.py "$root" "$to/$name-$target$suffix"
}

packages() {
  local target=$1 program=$2 generator=$3 packager root=$scratch/root
  case $target in
    x86_64-*) export ARCH=amd64 ;;
    aarch64-*) export ARCH=arm64 ;;
    *) fail "no name for the architecture of $target in packages" ;;
  esac
  for packager in deb rpm; do
    local places=()
    [[ $packager != deb ]] || places=(ZSHDIR=share/zsh/vendor-completions "LICENSEDIR=share/doc/$name")
    rm -rf "$root"
    env DESTDIR="$root" PREFIX=/usr PROGRAM="$program" GENERATOR="$generator" THIRD_PARTY="$scratch/licenses.txt" \
      ${places[@]+"${places[@]}"} .github/package.sh
    find "$root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
    ROOT=$root nfpm package --config .github/nfpm.yaml --packager "$packager" --target "$to"
  done
}

release() {
  local target=$1 program=$compiled/$1/dist/$name generator
  [[ $target != *-windows-* ]] || program=$program.exe
  "$python" .github/licenses.py "$target" >"$scratch/licenses.txt"
  build "$target"
  generator=${GENERATOR:-$program}
  "$generator" --version >/dev/null 2>&1 ||
    fail "$generator does not run here, and so cannot write the manual pages"$'\n''hint: set GENERATOR to one that does'
  archive "$target" "$program" "$generator"
  if [[ $target == *-linux-musl ]]; then
    packages "$target" "$program" "$generator"
    unzip -qjo "$scratch/wheels/"*.whl '*/sboms/*.json' -d "$scratch/sboms"
    cp "$scratch/sboms/"*.json "$to/$name-$target.cdx.json"
  fi
  mv "$scratch/wheels/"*.whl "$to"
}

[[ $# -gt 0 ]] || set -- "$(uname -m)-unknown-linux-musl" source
for target in "$@"; do
  if [[ $target == source ]]; then
    maturin sdist --out "$to"
  else
    release "$target"
  fi
done

cd "$to"
"$python" - "$name"* <<'END'
import hashlib, sys
for name in sys.argv[1:]:
    if name.endswith((".tar.gz", ".zip", ".deb", ".rpm")):
        with open(name, "rb") as file, open(f"{name}.sha256", "w", newline="\n") as digest:
            print(f"{hashlib.sha256(file.read()).hexdigest()}  {name}", file=digest)
END
