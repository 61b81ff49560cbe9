# Completion code: right syntax, and it completes.
. "$(dirname "$0")/cli_lib.sh"

run 0 completion bash
cp "$work/out" "$work/bash"
bash -n "$work/bash" || fail "bash finds errors"
run 0 completion zsh
bash -n "$work/out" || fail "zsh code: bash finds errors"
head -1 "$work/out" | grep -qx '#compdef stint' || fail "zsh: no #compdef"
if command -v zsh >/dev/null; then zsh -n "$work/out" || fail "zsh finds errors"; fi
run 0 completion fish
if command -v fish >/dev/null; then fish -n "$work/out" || fail "fish finds errors"; fi
[ "$(grep -vc '^complete -c stint \|^#' "$work/out")" -eq 0 ] || fail "fish: odd lines"
run 0 completion bash --json
json '"complete" in j["script"]'

. "$work/bash"
complete_words() { # WORD...: candidates for the last
    COMP_WORDS=("$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _stint_words
    echo " ${COMPREPLY[*]} "
}
expect() { # WANTED WORD...
    local want=$1
    shift
    case $(complete_words "$@") in
    *" $want "*) ;;
    *) fail "'$*' does not complete to $want: $(complete_words "$@")" ;;
    esac
}
expect train stint tr
expect data stint da
expect glyphs stint data gl
expect --memory stint train x.ini --mem
expect --data stint plan --da
expect --set stint train --s
expect folder stint eval --format f
expect --min-faces stint data glyphs --min
cd "$work" && touch some.ini
expect some.ini stint train so
finish
