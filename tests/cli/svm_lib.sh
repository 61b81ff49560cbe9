# Sourced by the scripts of stint svm after cli_lib.sh: one Python process that they ask.
# oracles SCRIPT.py: starts it in the folder at work and makes its tables; false without
# NumPy. Debian's Python, which has python3-numpy.
oracles() {
    coproc ORACLES { exec /usr/bin/python3 "$STINT_SOURCE/tests/cli/$1" serve 2>&1; }
    ask make
}

# ask NAME ARGUMENT ...: is it so? What is wrong with it goes to stderr.
ask() {
    local said=
    printf '%q ' "$@" >&"${ORACLES[1]}" || return 1
    echo >&"${ORACLES[1]}"
    IFS= read -r said <&"${ORACLES[0]}"
    [ "$said" = ok ] || {
        echo "$*: $said" >&2
        return 1
    }
}

json() { ask json "$1" || fail "JSON: $1"; }
value() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" out; }
sha() { value model_sha256; }
