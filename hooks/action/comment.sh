#!/usr/bin/env bash
# Shows what a change deploys, the file $1, as a comment of its pull request or merge request: over the one that an earlier
# run has made. COMMENT_TOKEN is what may write it.
set -euo pipefail

# What cannot be shown is no finding.
give_up() {
  if [[ -n ${GITLAB_CI:-} ]]; then
    echo "warning: $1" >&2
  else
    echo "::warning title=git kustomize-localize::${1//$'\n'/%0A}"
  fi
  exit 0
}

# What such a comment begins with.
marker='<!-- git-kustomize-localize diff -->'

# Sends a request: its method, its URL, other arguments of curl; the file `reply` has the answer. No other process sees the
# token.
api() {
  curl --config - --silent --show-error --fail-with-body --output "$reply" --request "$1" "${@:2}" <<<"header = \"$login\""
}

# Asks for a URL, and again where the server is busy.
get() {
  : >"$reply"
  api GET "$1" --retry 3 --retry-max-time 30
}

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
reply=$temporary/reply

if [[ -n ${GITLAB_CI:-} ]]; then
  login="PRIVATE-TOKEN: ${COMMENT_TOKEN:-}"
  comments=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
  change=(PUT "$comments")
  { get "$CI_API_V4_URL/user" && author=$(jq -er .username "$reply"); } ||
    give_up 'COMMENT_TOKEN is not the token of a user: give it the scope api'
elif [[ -z $KL_PULL_REQUEST || $KL_HEAD_REPOSITORY != "$GITHUB_REPOSITORY" ]]; then
  echo 'no comment: not a pull request, or one from another repository, whose token may not comment'
  exit 0
else
  login="Authorization: Bearer $COMMENT_TOKEN"
  issues=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues
  comments=$issues/$KL_PULL_REQUEST/comments
  change=(PATCH "$issues/comments")
  author='github-actions[bot]'
fi

page=1
while
  get "$comments?per_page=100&page=$page" || give_up "the comments cannot be read: $(<"$reply")"
  # Anybody can write the marker: only what this job has written is taken.
  id=$(jq -r --arg author "$author" --arg marker "$marker" \
    'map(select((.user.login // .author.username) == $author and (.body | startswith($marker))))[0].id // empty' "$reply") ||
    give_up 'the comments cannot be read: no JSON, or no jq'
  [[ -z $id && $(jq length "$reply") == 100 ]]
do
  page=$((page + 1))
done

body=$1
if [[ ! -s $body ]]; then
  [[ -n $id ]] || exit 0
  # What an earlier run has found is not true any more.
  body=$temporary/body
  printf '%s\n**what this change deploys is not known**: see the log of the check\n' "$marker" >"$body"
fi
jq --null-input --rawfile body "$body" '{$body}' >"$temporary/request"
sent=(POST "$comments")
[[ -z $id ]] || sent=("${change[0]}" "${change[1]}/$id")
api "${sent[@]}" --header 'Content-Type: application/json' --data-binary "@$temporary/request" ||
  give_up "the comment cannot be written, which needs pull-requests: write, or the scope api: $(<"$reply")"
