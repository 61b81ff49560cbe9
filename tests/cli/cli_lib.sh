# Sourced by the scripts here: run stint, look at status, stdout and stderr.
set -u
: "${STINT:?path of the program}" "${STINT_SOURCE:?}" "${STINT_BUILD:?}"
export -n STINT STINT_SOURCE STINT_BUILD # to the program these are no variables of its own
work=$(mktemp -d /tmp/stint-cli-XXXXXX)
trap 'rm -rf "$work"' EXIT
failures=0

full() { [ "${TEST_SIZE:-}" = full ]; } # with all cases? (see tests/CMakeLists.txt)

# A sanitizer's own memory is in no plan.
sanitized() { grep -qE '__(asan|msan|tsan)_init' "$STINT"; }

# MiB that do, by the refusal in stderr, or nothing. A sanitizer's memory differs from run to
# run: 2 more then.
least_mib() {
    local least
    least=$(sed -n 's/.*--memory \([0-9]*\)M.*/\1/p' "$work/err" | tail -1)
    [ -n "$least" ] && sanitized && least=$((least + 2))
    echo "$least"
}

fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

# run STATUS ARGUMENT...: leaves $work/out and $work/err.
run() {
    local want=$1 got=0
    shift
    "$STINT" "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    if [ "$got" -ne "$want" ]; then
        fail "stint $*: status $got, wanted $want"
        sed 's/^/    /' "$work/out" "$work/err" | head -20 >&2
    fi
}

says() { # in out|err
    grep -qF -- "$2" "$work/$1" || {
        fail "'$2' is not in std$1:"
        sed 's/^/    /' "$work/$1" | head -20 >&2
    }
}

silent() { [ ! -s "$work/$1" ] || fail "std$1 is not empty: $(head -3 "$work/$1")"; }

json_ok() {
    python3 -m json.tool <"$work/out" >/dev/null || fail "stdout is no JSON object"
}

# json PYTHON-EXPRESSION over the object j
json() { # (without packages a third sooner: it is called thousands of times)
    python3 -SE - "$work/out" "$1" <<'PY' || fail "JSON: $1"
import json, sys
j = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)
PY
}

# words "WORD..." COUNT: text in an order that can be learnt.
words() {
    awk -v words="$1" -v count="$2" 'BEGIN { s = 1; n = split(words, w, " ")
        for (i = 0; i < count; i++) { s = (s * 16807) % 2147483647
            printf "%s%s", w[1 + (i + s % 3) % n], s % 13 == 0 ? "\n" : " " } }'
}

finish() {
    [ "$failures" -eq 0 ] && echo "ok" && exit 0
    echo "$failures failures" >&2
    exit 1
}
