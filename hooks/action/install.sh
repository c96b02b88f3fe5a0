#!/usr/bin/env bash
# Puts git-kustomize-localize on the PATH of the job: a released binary, or the source of this action.
set -euo pipefail

fail() {
  echo "::error title=git kustomize-localize::$1"
  exit 2
}

bin=$RUNNER_TEMP/git-kustomize-localize/bin

# Ends with 1 where there is no such release, and the whole script where it is not what it should be.
release() {
  [[ $KL_REF =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || return 1
  local system archive url expected actual
  system=$(tr '[:upper:]' '[:lower:]' <<<"$RUNNER_OS-$RUNNER_ARCH")
  archive=$RUNNER_TEMP/git-kustomize-localize.tar.gz
  url=$GITHUB_SERVER_URL/$KL_REPOSITORY/releases/download/$KL_REF/git-kustomize-localize-$system.tar.gz
  curl --fail --silent --show-error --location --proto '=https' --retry 3 --output "$archive" "$url" || return 1
  expected=$KL_SHA256
  if [[ -z $expected ]]; then
    expected=$(curl --fail --silent --show-error --location --proto '=https' --retry 3 "$url.sha256" | cut -d ' ' -f 1) ||
      fail "no digest at $url.sha256"
  fi
  if command -v sha256sum >/dev/null; then
    actual=$(sha256sum "$archive" | cut -d ' ' -f 1)
  else
    actual=$(shasum -a 256 "$archive" | cut -d ' ' -f 1)
  fi
  [[ $actual == "$expected" ]] || fail "$url has the SHA-256 $actual, and not $expected"
  mkdir -p "$bin"
  tar -xzf "$archive" -C "$bin"
  echo "installed $KL_REF"
}

# No HTTP client and no TLS is needed to check, unless upstream is to be asked.
compile() {
  command -v cargo >/dev/null || fail 'cargo is not on PATH, so the program cannot be compiled'
  local features=(--no-default-features)
  [[ ${KL_VERIFY_LOCK:-false} != true ]] || features=()
  cargo install --quiet --locked ${features[@]+"${features[@]}"} --path "$KL_ACTION" --root "${bin%/bin}"
  echo "compiled $KL_ACTION"
}

case $KL_INSTALL in
  none)
    command -v git-kustomize-localize >/dev/null || fail 'git-kustomize-localize is not on PATH'
    exit 0
    ;;
  release) release || fail "there is no release $KL_REF for $RUNNER_OS $RUNNER_ARCH: use a tag that has one, or install: source" ;;
  source) compile ;;
  auto) release || compile ;;
  *) fail 'install must be auto, release, source or none' ;;
esac
echo "$bin" >>"$GITHUB_PATH"
