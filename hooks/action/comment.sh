#!/usr/bin/env bash
# Shows what a change deploys as a comment of its pull request: over the one that an earlier run has made.
set -euo pipefail

fail() {
  echo "::error title=git kustomize-localize::$1"
  exit 2
}

# What such a comment begins with.
marker='<!-- git-kustomize-localize diff -->'

if [[ -z $KL_PULL_REQUEST || $KL_FORK == true ]]; then
  echo 'no comment: not a pull request, or one from a fork, whose token may not comment'
  exit 0
fi
body=$RUNNER_TEMP/kustomize-localize-comment.md
if [[ -s $KL_FILE ]]; then
  cp -- "$KL_FILE" "$body"
else
  # What an earlier run has found is not true any more.
  printf '%s\n**what this change deploys is not known**: see the log of the check\n' "$marker" >"$body"
fi

# Sends a request to the API: its method, its path, other arguments of curl. No other process sees the token.
api() {
  curl --config - --silent --show-error --fail-with-body --request "$1" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues/$2" \
    "${@:3}" <<<"header = \"Authorization: Bearer $TOKEN\""
}

reply=$RUNNER_TEMP/kustomize-localize-reply.json
page=1
while
  api GET "$KL_PULL_REQUEST/comments?per_page=100&page=$page" >"$reply" || fail "the comments cannot be read: $(<"$reply")"
  # Anybody can write the marker: only what this job has written is taken.
  id=$(jq -r --arg marker "$marker" \
    'map(select(.user.login == "github-actions[bot]" and (.body | startswith($marker))))[0].id // empty' "$reply") ||
    fail 'the comments cannot be read: no JSON, or no jq'
  [[ -z $id && $(jq length "$reply") == 100 ]]
do
  page=$((page + 1))
done

request=$RUNNER_TEMP/kustomize-localize-request.json
jq --null-input --rawfile body "$body" '{$body}' >"$request"
if [[ -n $id ]]; then
  sent=(PATCH "comments/$id")
else
  sent=(POST "$KL_PULL_REQUEST/comments")
fi
api "${sent[@]}" --data-binary "@$request" >"$reply" ||
  fail "the comment cannot be written: give the job pull-requests: write. $(<"$reply")"
