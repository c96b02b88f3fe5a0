#!/usr/bin/env bash
# Puts git-kustomize-localize on the PATH of the job: a released binary, or the source of this action.
set -euo pipefail

fail() {
  echo "::error title=git kustomize-localize::$1"
  exit 2
}

bin=$RUNNER_TEMP/git-kustomize-localize/bin
# The release that belongs to this commit: its tag, and below it the digests of its archives, as sha256sum prints them.
# The workflow that makes a release commits it, and tags that commit; before the first release it is not there.
known=$KL_ACTION/hooks/action/release

# Prints the name of the archive for this runner.
archive() {
  case $RUNNER_OS-$RUNNER_ARCH in
    Linux-X64) echo git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz ;;
    Linux-ARM64) echo git-kustomize-localize-aarch64-unknown-linux-musl.tar.gz ;;
    macOS-X64) echo git-kustomize-localize-x86_64-apple-darwin.tar.gz ;;
    macOS-ARM64) echo git-kustomize-localize-aarch64-apple-darwin.tar.gz ;;
    Windows-X64) echo git-kustomize-localize-x86_64-pc-windows-msvc.zip ;;
    *) return 1 ;;
  esac
}

download() {
  curl --fail --silent --show-error --location --proto '=https' --retry 3 --output "$2" "$1"
}

# The digest is of this commit; the attestation says which workflow built the archive. Where gh, its login or GitHub's
# own server is missing, the digest alone decides.
attested() {
  [[ $GITHUB_SERVER_URL == https://github.com && -n ${GH_TOKEN:-} ]] && command -v gh >/dev/null || return 0
  gh attestation verify "$1" --repo "$KL_REPOSITORY" >/dev/null
}

# Ends with 1 where there is no such release, and the whole script where it is not what it should be.
release() {
  local tag name url expected actual file
  tag=$(head -n 1 "$known" 2>/dev/null) || return 1
  if [[ $KL_REF =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ && $KL_REF != "$tag" ]]; then
    fail "this action is used at $KL_REF, and comes with the release $tag: use it at $tag"
  fi
  name=$(archive) || return 1
  expected=${KL_SHA256:-$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$known")}
  [[ -n $expected ]] || fail "no digest of $name in $known"
  url=$GITHUB_SERVER_URL/$KL_REPOSITORY/releases/download/$tag/$name
  file=$RUNNER_TEMP/$name
  download "$url" "$file" || return 1
  if command -v sha256sum >/dev/null; then
    actual=$(sha256sum "$file" | cut -d ' ' -f 1)
  else
    actual=$(shasum -a 256 "$file" | cut -d ' ' -f 1)
  fi
  [[ $actual == "$expected" ]] || fail "$url has the SHA-256 $actual, and not $expected"
  attested "$file" || fail "$url was not built by a workflow of $KL_REPOSITORY: gh attestation verify fails"
  mkdir -p "$bin"
  if [[ $name == *.zip ]]; then
    unzip -qjo "$file" '*/git-kustomize-localize.exe' -d "$bin"
  else
    tar -xzf "$file" -C "$bin" --strip-components 1
  fi
  echo "installed $tag"
}

compile() {
  command -v cargo >/dev/null || fail 'cargo is not on PATH, so the program cannot be compiled'
  cargo install --quiet --locked --path "$KL_ACTION" --root "${bin%/bin}"
  echo "compiled $KL_ACTION"
}

case $KL_INSTALL in
  none)
    command -v git-kustomize-localize >/dev/null || fail 'git-kustomize-localize is not on PATH'
    exit 0
    ;;
  release) release || fail "$KL_REF of this action comes with no release for $RUNNER_OS $RUNNER_ARCH: use a tag that has one, or install: source" ;;
  source) compile ;;
  auto) release || compile ;;
  *) fail 'install must be auto, release, source or none' ;;
esac
echo "$bin" >>"$GITHUB_PATH"
