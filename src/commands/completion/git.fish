
# `git kustomize-localize <TAB>`
function __fish_git_kustomize_localize
    set -l words (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token --cut-at-cursor)
    set -l first (contains --index -- kustomize-localize $words)
    or return
    complete --do-complete "git-kustomize-localize "(string join -- ' ' (string escape -- $words[(math $first + 1)..-1]))
end
complete -c git -n __fish_git_needs_command -f -a kustomize-localize -d 'Make kustomize builds hermetic'
complete -c git -n '__fish_seen_subcommand_from kustomize-localize' -f -a '(__fish_git_kustomize_localize)'
