# Help, versions and what a user can mistype.
. "$(dirname "$0")/cli_lib.sh"

run 2
says err "Subcommands:"
silent out
for word in help --help -h; do
    run 0 $word
    says out "Example:"
    silent err
done

run 0 help
mapfile -t commands < <(sed -n '/^Subcommands:/,/^$/s/^  \(.............\) .*/\1/p' "$work/out" | sed 's/ *$//')
[ "${#commands[@]}" -ge 30 ] || fail "only ${#commands[@]} subcommands in the overview"
cp "$work/out" "$work/overview"
for command in "${commands[@]}"; do
    run 0 $command -h
    says out "Usage: stint $command"
    says out "--json"
    summary=$(sed -n "1s/^stint $command - //p" "$work/out")
    grep -qxF "$(printf '  %-13s %s' "$command" "$summary")" "$work/overview" ||
        fail "$command: the overview has its summary in another form"
    silent err
    cp "$work/out" "$work/short"
    run 0 $command --help
    cmp -s "$work/out" "$work/short" || fail "$command: -h and --help differ"
    run 0 help $command
    cmp -s "$work/out" "$work/short" || fail "$command: help and -h differ"
    awk 'length($0) > 100 { exit 1 }' "$work/out" || fail "$command -h: lines too long"
    screen=48
    # The recipe's options and their own; those of LIBSVM's programs.
    case $command in trust*) screen=58 ;; svm*) screen=72 ;; esac
    [ "$(wc -l <"$work/out")" -le $screen ] || fail "$command -h: more than a screen"
    run 2 $command --no-such-flag
    says err "no-such-flag"
    says err "stint $command -h"
    silent out
    run 2 $command --json --no-such-flag
    json 'j["error"]["code"] == 2'
done

# data.path is --data on the command line and STINT_DATA in the environment.
run 0 train -h
says out "--data PATH"
run 2 train --path x y.ini
says err "--set data.path=VALUE"
run 2 shrink model --lr 1
says err "--set optimizer.lr=VALUE"

run 0 data -h
says out "stint data check"
run 2 data
says err "stint data check"
run 2 data chekc
says err "data check"
run 2 trian
says err "did you mean 'train'"
run 2 qwertz
says err "stint help"
run 2 train
says err "RECIPE"
run 2 train a.ini b.ini
says err "b.ini"
run 2 bench step
[ "$(grep -c 'stint bench step recipes' "$work/err")" -eq 1 ] || fail "more than one example"
run 2 bench gemm 64x64
says err "stint bench gemm: '64x64' is no size; wanted MxNxK"
run 0 help bench gemm
says out "and the scratch that a"
run 2 plan --memroy 3M x.ini
says err "--memory"
run 2 run model.safetensors
says err "FILE"
run 2 completion tcsh
says err "bash, zsh or fish"
run 2 help trian
says err "train"
run 2 data glyphs --size 3
says err "from 8 to 256"
run 2 data glyphs --size two --train 1
says err "--size"
says err "--train"

run 0 --version
says out "stint "
says out "instruction set"
run 0 --version --json
# the version of the numerics is that of the code, and the last that docs/trust.md knows
numerics=$(sed -n 's/^#define STI_NUMERICS_VERSION "\(.*\)"/\1/p' "$STINT_SOURCE/src/base/numerics.h")
json "j['numerics'] == '$numerics'"
last=$(sed -n '/^| version | what changed bits |$/,/^$/p' "$STINT_SOURCE/docs/trust.md" | sed -n 's/^| \([0-9]*\) |.*/\1/p' | tail -1)
[ "$last" = "$numerics" ] || fail "trust.md ends with numerics $last, the code has $numerics"
json 'j["version"] and j["isa"] and j["threads"] >= 1 and "freetype" in j["parts"]'
for topic in recipe models environment exit; do
    run 0 help $topic
    silent err
    run 0 help $topic --json
    json 'len(j["text"]) > 100'
done

run 0 help models
says out "  smallcnn-bn  the same"
says out "  gpt2-124m    "
run 0 help environment
says out "  XDG_CACHE_HOME "
awk 'length($0) > 80 { exit 1 }' "$work/out" || fail "help environment: lines too long"

# A reader that has seen enough; a full disk.
"$STINT" help recipe | head -1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "a broken pipe is not quiet"
if [ -w /dev/full ]; then
    "$STINT" help >/dev/full 2>"$work/err"
    [ $? -eq 5 ] || fail "writing to a full disk must fail with 5"
    says err "full"
fi

# Variables: an unknown one is a warning, a bad value an error.
STINT_MEMORRY=3M run 0 data glyphs -h
STINT_BATCHH=3 run 2 completion nosuchshell
says err "STINT_BATCHH"
says err "did you mean STINT_BATCH?"
STINT_SLEPS=1 run 2 completion nosuchshell
says err "unknown environment variable STINT_SLEPS is ignored; did you mean STINT_SLEEPS?"
# several are warned of once each, also where the recipe is looked for
STINT_ONE=1 STINT_TWO=2 run 4 plan --data "$work/nothing"
[ "$(grep -c 'STINT_ONE is ignored' "$work/err")" = 1 ] || fail "STINT_ONE is not told once"
[ "$(grep -c 'STINT_TWO is ignored' "$work/err")" = 1 ] || fail "STINT_TWO is not told once"
# Each name of the topic is known, but for the two that stand for whole tables.
for name in $("$STINT" help environment | sed -n 's/^  \(STINT_[A-Z_]*\) .*/\1/p' | tail -n +3); do
    env "$name=" "$STINT" completion nosuchshell 2>"$work/err"
    grep -q unknown "$work/err" && fail "$name is unknown to its own topic"
done
STINT_BATCH=3 run 2 completion nosuchshell
grep -q STINT_BATCH "$work/err" && fail "STINT_BATCH is known, though not used here"
STINT_SIZE=two run 2 data glyphs
says err "STINT_SIZE"
finish
