# The commands of docs/play.md, run in their order in an empty folder, and refusals.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
ln -s "$STINT_SOURCE/recipes" recipes
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/play.md"
} >script
[ "$(wc -l <script)" -gt 5 ] || fail "few commands found in play.md"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
grep -q 'raw frames/s' "$work/out" || fail "no rate"
[ -s rally.png ] && [ -s half.snapshot ] || fail "files are missing"

run 8 eval first --episodes 1 --memory 1G
says err 'not planned for'
run 2 eval first --episodes 1 --data recipes
says err '--data: is of models of images, text or clicks, and this is an agent'

rom=recipes/roms/rally.bin
hash_of() {
    stint play run "$rom" --game none --json "$@" | sed 's/.*"frames_sha256":"\([^"]*\)".*/\1/'
}
# The second half of a run is that of the run that goes on from a snapshot.
yes 0 | head -100 >zeros
yes 0 | head -200 >more
[ "$(hash_of --frames 100 --load half.snapshot --actions zeros)" = \
    "$(hash_of --frames 100 --load half.snapshot --actions noop)" ] ||
    fail "a list of zeros is not noop"
stint play run "$rom" --game none --frames 200 --actions more --save whole.snapshot -q >/dev/null
stint play run "$rom" --game none --frames 100 --load half.snapshot --actions zeros \
    --save joined.snapshot -q >/dev/null
cmp -s whole.snapshot joined.snapshot || fail "two halves end elsewhere than the whole"

# Peak within the plan, and the plan within 3 % of it: with a checkpoint and without one,
# from one on, and of the largest image.
peak_as_planned() { # arguments of stint train
    stint train recipes/rally-ram.ini --set agent.horizon=4 --set agent.every=4 \
        --set agent.groups=1 -j 1 --out peak --json "$@" >"$work/out" 2>"$work/err" ||
        fail "stint train $*: $(tail -2 "$work/err")"
    planned=$(sed 's/.*"planned_peak_bytes":\([0-9]*\).*/\1/' "$work/out")
    peak=$(sed 's/.*"peak_rss_bytes":\([0-9]*\).*/\1/' "$work/out")
    [ "$peak" -le "$planned" ] && [ $((planned * 100)) -le $((peak * 103)) ] ||
        fail "stint train $*: a peak of $peak, planned $planned"
}
for i in 1 2 3 4 5 6; do
    [ $i = 1 ] && cat recipes/roms/mapper-3f.bin >large.bin
    cat large.bin large.bin >larger.bin && mv larger.bin large.bin
done
# (A sanitizer's own memory is in no plan.)
if grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt"; then
    peak_as_planned --force --steps 3 --set env.envs=2048 --set run.checkpoint_every=0
    peak_as_planned --force --steps 3 --set env.envs=2048 --set run.checkpoint_every=2
    peak_as_planned --resume --steps 5 --set env.envs=2048 --set run.checkpoint_every=2
    peak_as_planned --force --steps 3 --set env.envs=64 --rom large.bin --set env.game=none \
        --set 'env.done=ram:0x80==255'
    peak_as_planned --force --steps 3 --set env.envs=auto --set agent.horizon=16 # with what is tried
fi

refused_of() { # code, words, arguments of stint
    code=$1 words=$2
    shift 2
    stint "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || fail "stint $*: exit $got, wanted $code"
    grep -q -e "$words" "$work/err" || fail "stint $*: says $(cat "$work/err")"
}
refused() { # code, words, arguments of stint play
    code=$1 words=$2
    shift 2
    refused_of "$code" "$words" play "$@"
}
: >empty.bin
head -c 3000 "$rom" >cut.bin
echo 18 >bad
refused 4 'empty' info empty.bin --game none
refused 4 'no size' info cut.bin --game none
refused 4 '--reward' info "$rom"
refused 4 'bad:1' run "$rom" --game none --frames 1 --actions bad
refused 4 '100 actions' run "$rom" --game none --frames 101 --actions zeros
refused 4 'RAM' info "$rom" --game none --reward ram:0x7F
refused 4 'wanted at' info "$rom" --game none --done 'ram:0x80=3'
refused 4 'no snapshot' run "$rom" --game none --load zeros
refused 2 'written over' run "$rom" --game none --actions zeros --save zeros
refused 2 'written over' run "$rom" --game none --load half.snapshot --png half.snapshot
refused 2 'are both x' run "$rom" --game none --save x --png x
refused 2 'frameskip' bench "$rom" --game none --frameskip 0
refused_of 3 'the least that would do is --memory [0-9]*M' plan recipes/rally-ram.ini --memory 15M
# What is for networks alone is not left out in silence.
refused_of 8 '--svg: is not for an agent' plan recipes/rally-ram.ini --svg a.svg
refused_of 8 '--net-ranks: is not for an agent' plan recipes/rally-ram.ini --net-ranks 2
refused_of 8 '--profile: is not for an agent' train recipes/rally-ram.ini --profile --out none
refused_of 8 '--tensorboard: is not for an agent' train recipes/rally-ram.ini --tensorboard b --out none
refused_of 8 'is the model of an agent' info first
[ ! -e none ] || fail "a folder was made"
# A network does not go on in an agent's folder, nor begins anew there.
seq 2000 >text.txt
cp first/recipe.ini before.ini
refused_of 2 'its run was that of an agent' train --data text.txt --set model.name=gpt \
    --set model.width=12 --set model.heads=2 --set model.depth=1 --set data.tokenizer=byte --steps 1 \
    --out first --resume
cmp -s first/recipe.ini before.ini || fail "a refused run wrote its recipe"
finish
