#!/usr/bin/env bash
# Checks what the commit that is checked out adds to the one that the change starts from, whose configuration counts.
# What cannot be judged fails: nothing here may turn a check of nothing, or of something else, into an all-clear.
set -euo pipefail

fail() {
  echo "::error title=git kustomize-localize::$1"
  exit 2
}

is_commit() {
  git rev-parse --quiet --verify --end-of-options "$1^{commit}" >/dev/null
}

# Fetches the commit or the ref $1; fails with what can be done about it, where $2 says what it is.
fetch() {
  local said
  said=$(LC_ALL=C git fetch --quiet --no-tags --depth=1 --no-recurse-submodules origin "$1" 2>&1) && return
  echo "$said" >&2
  case $said in
    *'not our ref'*) fail "$2 is gone, as after a forced push: give base" ;;
    *'could not read '* | *'Authentication failed'*) fail "$2 cannot be fetched: give actions/checkout persist-credentials: true" ;;
  esac
  # Without a login it can still be in the checkout.
  [[ $'\n'$(parents "$head")$'\n' != *$'\n'"$1"$'\n'* ]] || fail "$2 cannot be fetched: give actions/checkout fetch-depth: 2"
  fail "$2 cannot be fetched: see the log"
}

# The commit $1, fetched if a shallow checkout has left it out.
at_hand() {
  [[ $1 =~ ^[0-9a-f]{40}([0-9a-f]{24})?$ ]] || fail 'the event names no commit to compare with: give it as base'
  is_commit "$1" || fetch "$1" "commit $1, which this change starts from,"
  base=$1
}

# The default branch: what any other branch, a tag and a run by hand are judged against. What a branch held before a push
# was judged by nobody who could merge it.
default_branch() {
  [[ -n $KL_DEFAULT_BRANCH && $GITHUB_REF != "refs/heads/$KL_DEFAULT_BRANCH" ]] ||
    fail "the event $GITHUB_EVENT_NAME names no commit to compare with: give base"
  fetch "refs/heads/$KL_DEFAULT_BRANCH" "the branch $KL_DEFAULT_BRANCH, to compare with,"
  base=$(git rev-parse --verify FETCH_HEAD)
}

workspace=$PWD
cd -- "${KL_DIRECTORY:-.}" || fail "there is no directory $KL_DIRECTORY: it is the path of actions/checkout"
if ! said=$(LC_ALL=C git rev-parse --verify 'HEAD^{commit}' 2>&1 >/dev/null); then
  echo "$said" >&2
  [[ $said != *'dubious ownership'* ]] ||
    fail "git trusts no checkout of another user, as there is one in a container: before this step, run git config --global --add safe.directory '$PWD'"
  for place in */.git */*/.git; do
    place=${place%/.git}
    [[ ! -e $place/.git ]] || fail "nothing is checked out here, but in $place: give directory: $place"
  done
  fail 'nothing is checked out: actions/checkout must come first'
fi
head=$(git rev-parse --verify 'HEAD^{commit}')

# Prints the ids that the commit $1 was made from, a line each: a shallow checkout has them, too.
parents() {
  git cat-file commit "$1" | sed -n '/^$/,$d; s/^parent //p'
}

# Whether the commit $1 is in what is checked out.
contains() {
  case $'\n'$head$'\n'$(parents "$head")$'\n' in
    *$'\n'"$1"$'\n'*) return ;;
  esac
  is_commit "$1" && git merge-base --is-ancestor "$1" "$head"
}

# Fails where the commit $1, which the event is about, is not in what is checked out; $2 says what to do.
is_the_change() {
  [[ -n $1 ]] || fail "the event $GITHUB_EVENT_NAME names no commit to check"
  contains "$1" || fail "this checkout does not contain $1, which the event $GITHUB_EVENT_NAME is about: $2"
}
by_default='leave out ref and repository of actions/checkout, or give fetch-depth: 0'

base=$KL_BASE is_localized=false
case $GITHUB_EVENT_NAME in
  pull_request)
    from=$KL_PULL_REQUEST_BASE
    if contains "$GITHUB_SHA"; then
      # GitHub checks a merge out: its first parent is the base as it is now.
      merged=$(parents "$GITHUB_SHA")
      [[ $merged != *$'\n'* ]] || from=${merged%%$'\n'*}
    else
      is_the_change "$KL_PULL_REQUEST_HEAD" "$by_default"
    fi
    ;;
  pull_request_target)
    is_the_change "$KL_PULL_REQUEST_HEAD" 'use the event pull_request'
    from=$KL_PULL_REQUEST_BASE
    ;;
  merge_group)
    is_the_change "$GITHUB_SHA" "$by_default"
    from=$KL_MERGE_GROUP_BASE
    ;;
  push)
    is_the_change "$GITHUB_SHA" "$by_default"
    from=default
    # A new branch comes from no commit.
    [[ $GITHUB_REF != "refs/heads/$KL_DEFAULT_BRANCH" || ! $KL_BEFORE =~ [1-9a-f] ]] || from=$KL_BEFORE
    ;;
  *)
    # Who gives base chooses what is checked out, too.
    [[ -n $base ]] || is_the_change "$GITHUB_SHA" "$by_default"
    from=default
    ;;
esac
# What `branch` has made is no change: it is what its record says, or somebody has edited it.
[[ -n $base || $from != default || $GITHUB_REF != refs/heads/localized/* ]] || from=$head is_localized=true
if [[ -n $base ]]; then
  is_commit "$base" || {
    [[ $(git rev-parse --is-shallow-repository) != true ]] || fail 'base names no commit that is at hand: give actions/checkout fetch-depth: 0'
    fail 'base names no commit'
  }
elif [[ $from == default ]]; then
  default_branch
else
  at_hand "$from"
fi

# Where the change begins: a shallow checkout has left out what is between. The check fails where it stays unknown.
for depth in 20 200 2000 2147483647; do
  if git merge-base "$head" "$base" >/dev/null || [[ $(git rev-parse --is-shallow-repository) != true ]]; then
    break
  fi
  git fetch --quiet --no-tags --no-recurse-submodules "--depth=$depth" origin "$head" "$base" || break
done

args=(check --rev HEAD "--base=$base")
# Given on purpose: the commit is judged by itself.
[[ -z $KL_BASE || $(git rev-parse --verify "$base^{commit}") != "$head" ]] || args=(check --rev HEAD)
paths=()
while IFS= read -r path; do
  [[ -z $path ]] || paths+=("$path")
done <<<"$KL_PATHS"

if [[ -n $KL_SARIF ]]; then
  # Code scanning closes what a newer run of the same ref lacks. Only of a change what is new is all.
  case $GITHUB_EVENT_NAME in
    pull_request | pull_request_target | merge_group) reported=("${args[@]}") ;;
    *) reported=(check --rev HEAD) ;;
  esac
  case $KL_SARIF in
    /* | ?:*) file=$KL_SARIF ;;
    *) file=$workspace/$KL_SARIF ;;
  esac
  # The status is that of the check below.
  git-kustomize-localize "${reported[@]}" --format sarif -- ${paths[@]+"${paths[@]}"} >"$file" || true
  { printf 'sarif<<KUSTOMIZE_LOCALIZE\n%s\nKUSTOMIZE_LOCALIZE\n' "$KL_SARIF"; } >>"$GITHUB_OUTPUT"
fi

status=0
# Runs the program, with its output appended to the file $2, and says $1, if that is anything, where it fails. Nothing of
# what it says is taken for a command.
also() {
  local word asked=0
  word=$(head -c 64 /dev/urandom | git hash-object --stdin)
  echo "::stop-commands::$word"
  { git-kustomize-localize "${@:3}" >>"$2"; } 2>&1 || asked=$?
  echo "::$word::"
  [[ -z $1 ]] || ((asked == 0)) || echo "::error title=git kustomize-localize::$1: see the log"
  ((asked <= status)) || status=$asked
}

if [[ $is_localized == true ]]; then
  also "${GITHUB_REF#refs/heads/} is not what its record says" /dev/stdout verify HEAD
  exit "$status"
fi

# What kustomize reads and nothing else does, only a build shows.
case $KL_BUILD in
  false) ;;
  true) args+=(--build) ;;
  auto | '') ! command -v kustomize >/dev/null || args+=(--build) ;;
  *) fail 'build is true, false or auto' ;;
esac
git-kustomize-localize "${args[@]}" --format github -- ${paths[@]+"${paths[@]}"} || status=$?

# What the locks hold, compared with upstream.
case $KL_VERIFY_LOCK in
  false | '') ;;
  true) also 'upstream is not what the locks hold, or cannot be asked' /dev/stdout verify HEAD --upstream ;;
  *) fail 'verify-lock is true or false' ;;
esac

# What the change deploys: a comment shows it.
diff=${KL_DIFF:-auto}
if [[ $diff == auto ]]; then
  diff=$KL_COMMENT
  ! command -v kustomize >/dev/null || diff=true
fi
case $diff in
  false) [[ $KL_COMMENT != true ]] || echo 'no comment: diff is false' ;;
  true)
    unknown='what the change deploys is not known'
    # Who reads why the check fails knows why, too.
    ((status == 0)) || unknown=
    file=$RUNNER_TEMP/kustomize-localize-diff.md
    : >"$file"
    also "$unknown" "$file" diff --rev HEAD --format markdown -- "$base" ${paths[@]+"${paths[@]}"}
    { printf 'diff<<KUSTOMIZE_LOCALIZE\n%s\nKUSTOMIZE_LOCALIZE\n' "$file"; } >>"$GITHUB_OUTPUT"
    if grep -q '^Too long for a comment: ' "$file"; then
      page=$RUNNER_TEMP/kustomize-localize-diff.html
      : >"$page"
      also "$unknown" "$page" diff --rev HEAD --format html -- "$base" ${paths[@]+"${paths[@]}"}
      { printf 'html<<KUSTOMIZE_LOCALIZE\n%s\nKUSTOMIZE_LOCALIZE\n' "$page"; } >>"$GITHUB_OUTPUT"
    fi
    { echo && cat -- "$file"; } >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
    ;;
  *) fail 'diff is true, false or auto' ;;
esac

# What the change touches. GitHub shows no larger ones; without it nothing is missing.
if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
  touched=$(git-kustomize-localize affected --rev HEAD "$base" 2>/dev/null) || touched=
  if [[ -n $touched && ${#touched} -lt 40000 ]]; then
    printf '\n### Kustomizations that may build to something else\n\n~~~text\n%s\n~~~\n' "$touched" >>"$GITHUB_STEP_SUMMARY"
  fi
fi
exit "$status"
