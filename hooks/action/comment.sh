#!/usr/bin/env bash
# Shows what a change deploys, the file $1, as a comment of its pull request or merge request: over the one that an earlier
# run has made. COMMENT_TOKEN is what may write it.
set -euo pipefail

fail() {
  if [[ -n ${GITLAB_CI:-} ]]; then
    echo "error: $1" >&2
  else
    echo "::error title=git kustomize-localize::$1"
  fi
  exit 2
}

# What such a comment begins with.
marker='<!-- git-kustomize-localize diff -->'

# Sends a request: its method, its URL, other arguments of curl. No other process sees the token.
api() {
  curl --config - --silent --show-error --fail-with-body --request "$1" "${@:2}" <<<"header = \"$login\""
}

if [[ -n ${GITLAB_CI:-} ]]; then
  login="PRIVATE-TOKEN: $COMMENT_TOKEN"
  comments=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
  change=(PUT "$comments")
  author=$(api GET "$CI_API_V4_URL/user" | jq -er .username) || fail 'COMMENT_TOKEN is not the token of a user: give it the scope api'
elif [[ -z $KL_PULL_REQUEST || $KL_FORK == true ]]; then
  echo 'no comment: not a pull request, or one from a fork, whose token may not comment'
  exit 0
else
  login="Authorization: Bearer $COMMENT_TOKEN"
  issues=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues
  comments=$issues/$KL_PULL_REQUEST/comments
  change=(PATCH "$issues/comments")
  author='github-actions[bot]'
fi

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
reply=$temporary/reply
page=1
while
  api GET "$comments?per_page=100&page=$page" >"$reply" || fail "the comments cannot be read: $(<"$reply")"
  # Anybody can write the marker: only what this job has written is taken.
  id=$(jq -r --arg author "$author" --arg marker "$marker" \
    'map(select((.user.login // .author.username) == $author and (.body | startswith($marker))))[0].id // empty' "$reply") ||
    fail 'the comments cannot be read: no JSON, or no jq'
  [[ -z $id && $(jq length "$reply") == 100 ]]
do
  page=$((page + 1))
done

body=$1
if [[ ! -s $body ]]; then
  # What an earlier run has found is not true any more.
  body=$temporary/body
  printf '%s\n**what this change deploys is not known**: see the log of the check\n' "$marker" >"$body"
fi
jq --null-input --rawfile body "$body" '{$body}' >"$temporary/request"
sent=(POST "$comments")
[[ -z $id ]] || sent=("${change[0]}" "${change[1]}/$id")
api "${sent[@]}" --header 'Content-Type: application/json' --data-binary "@$temporary/request" >"$reply" ||
  fail "the comment cannot be written, which needs pull-requests: write, or the scope api: $(<"$reply")"
