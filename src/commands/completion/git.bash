
# `git kustomize-localize <TAB>`: the completion of git calls this, with all words from `git` on.
_git_kustomize_localize() {
    local first=0
    while [[ $first -lt ${#COMP_WORDS[@]} && ${COMP_WORDS[first]} != kustomize-localize ]]; do
        first=$((first + 1))
    done
    local -a COMP_WORDS=(git-kustomize-localize "${COMP_WORDS[@]:first + 1}")
    local COMP_CWORD=$((COMP_CWORD - first))
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    _git__kustomize__localize git-kustomize-localize "$current" "$previous"
}
