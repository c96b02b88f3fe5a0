#!/bin/sh
# Installs the program with its manual pages, completions and licenses, as a package does when it is built:
#
#   cargo build --release --locked
#   DESTDIR=package PREFIX=/usr .github/package.sh
#
# DESTDIR    what stands before PREFIX until the package is unpacked. Default: nothing
# PREFIX     where it will be. Default: /usr/local
# PROGRAM    the program. Default: target/release/git-kustomize-localize
# THIRD_PARTY  the licenses of what is linked in, as .github/licenses.py prints them. Default: none
# GENERATOR  one that runs on this machine, where PROGRAM is for another. Default: PROGRAM
# MANDIR, BASHDIR, ZSHDIR, FISHDIR, LICENSEDIR  below PREFIX, where a distribution has other places
set -eu
top=$(dirname "$0")/..
program=${PROGRAM:-$top/target/release/git-kustomize-localize}
generator=${GENERATOR:-$program}
to=${DESTDIR:-}${PREFIX:-/usr/local}
man=$to/${MANDIR:-share/man}
bash=$to/${BASHDIR:-share/bash-completion/completions}
zsh=$to/${ZSHDIR:-share/zsh/site-functions}
fish=$to/${FISHDIR:-share/fish}
licenses=$to/${LICENSEDIR:-share/licenses/git-kustomize-localize}
umask 022

mkdir -p "$to/bin" "$man" "$bash" "$zsh" "$fish/vendor_completions.d" "$fish/vendor_conf.d" "$licenses"
install -m 755 "$program" "$to/bin/git-kustomize-localize"
"$generator" generate man "$man"
"$generator" generate completion bash >"$bash/git-kustomize-localize"
"$generator" generate completion zsh >"$zsh/_git-kustomize-localize"
"$generator" generate completion fish >"$fish/vendor_completions.d/git-kustomize-localize.fish"
# For `git kustomize-localize <TAB>`: fish looks for completions of `git` in those of git alone.
ln -sf ../vendor_completions.d/git-kustomize-localize.fish "$fish/vendor_conf.d/git-kustomize-localize.fish"
install -m 644 "$top/LICENSE-APACHE" "$top/LICENSE-MIT" "$licenses"
if [ -n "${THIRD_PARTY:-}" ]; then
  install -m 644 "$THIRD_PARTY" "$licenses/THIRD-PARTY-LICENSES.txt"
fi
