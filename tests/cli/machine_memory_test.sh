# Plans above what there is of memory: of the machine, and of a control group of either
# version, whose files are stood in for in a mount namespace of our own.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 32 256 32 || fail "no data"
printf '[data]\npath = data\n[model]\nname = resnet8\nwidth = 16\n[train]\nbatch = 128\nshards = 1\n' >r.ini
printf 'steps = 1\neval_every = 0\n' >>r.ini

# The machine has more than this needs, and less than the weights of that.
run 0 plan r.ini --json --quiet
json "j['machine']['holds'] and j['machine']['bytes'] >= j['peak_bytes']"
json "j['machine']['batch_that_fits'] == 0 == j['machine']['memory_that_fits']"
silent err
run 0 plan r.ini
says out "This process can have"
wide="--set model.name=mlp --set model.depth=3 --set model.width=1000000" # 12 TB and more
# shellcheck disable=SC2086 # several words
run 0 plan r.ini $wide --json
json "not j['machine']['holds'] and j['fits'] and j['peak_bytes'] > j['machine']['bytes']"
json "j['machine']['batch_that_fits'] == 0 == j['machine']['memory_that_fits']"
says err "is more than the"
says err "that this process can have"
says err "neither a smaller batch nor any --memory"
# shellcheck disable=SC2086
run 3 train r.ini $wide --out wide
says err "--force-memory"
[ ! -e wide ] || fail "a refused run left something behind"
# an allocation that fails says what would do
# shellcheck disable=SC2086
run 7 train r.ini $wide --out wide --force-memory
says err "out of memory"
says err "what takes less: neither a smaller batch nor any --memory (the least"
# and its advice holds where it was given
if ! grep -q __asan_init "$STINT"; then
    run 0 plan r.ini --set model.width=32 -j 1 --json
    kib=$(python3 -c 'import json; print(json.load(open("out"))["peak_bytes"] // 1024 * 9 // 10)')
    for way in batch memory; do
        (
            ulimit -v "$kib"
            run 7 train r.ini --set model.width=32 -j 1 --out tight --force
            says err "what takes less: --batch"
            advice=$(grep -o -e "--$way [0-9M]*" err)
            # shellcheck disable=SC2086 # two words
            run 0 train r.ini --set model.width=32 -j 1 --out tight --force $advice
            exit $failures
        ) || fail "advice under ulimit -v $kib"
    done
fi

# ---- control groups

# (A sanitizer's own memory is not in any plan, and its leak check reads /proc.)
if grep -qE '__(asan|msan|tsan)_init' "$STINT"; then
    finish
fi

sandbox() { unshare --user --map-root-user --mount "$@"; }
if ! sandbox mount --bind "$work" /sys/fs/cgroup 2>why; then
    echo "no mounts of our own here, so no control groups are tried: $(cat why)" >&2
    finish
fi

# limited FILE TEXT STATUS ARGUMENT...: run where a control group says so.
limited() {
    local file=$1 text=$2 want=$3 got=0
    shift 3
    rm -rf groups && mkdir -p "groups/$(dirname "$file")"
    [ "$text" = - ] || printf '%s\n' "$text" >"groups/$file"
    # shellcheck disable=SC2016 # for the inner shell
    sandbox sh -c 'mount --bind groups /sys/fs/cgroup && exec "$@"' sh \
        "$STINT" "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$want" ] || fail "$file = $text: stint $*: status $got, wanted $want: $(cat err)"
}

run 0 plan r.ini --json
read -r peak smallest host < <(python3 -c 'import json; j = json.load(open("out"))
print(j["peak_bytes"], j["smallest_bytes"], j["machine"]["bytes"])')
between=$(((peak + smallest) / 2))
files="memory.max"
grep -q ':memory:' /proc/self/cgroup && files="memory/memory.limit_in_bytes"
grep -q '^0::' /proc/self/cgroup && files="$files memory.max"
for file in $(printf '%s\n' $files | sort -u); do
    grep -q '^0::' /proc/self/cgroup || [ "$file" != memory.max ] || continue
    name=$(basename "$file")
    # too small for the plan, large enough for the recipe
    limited $file $between 0 plan r.ini --json
    json "j['machine']['bytes'] == $between and not j['machine']['holds'] and j['fits']"
    json "j['machine']['source'] == '$name of its control group'"
    json "0 < j['machine']['batch_that_fits'] < 128"
    json "$smallest <= j['machine']['memory_that_fits'] <= $between"
    says err "what fits: --batch"
    batch=$(python3 -c 'import json; print(json.load(open("out"))["machine"]["batch_that_fits"])')
    memory=$(python3 -c 'import json; print(json.load(open("out"))["machine"]["memory_that_fits"])')
    limited $file $between 3 train r.ini --out a
    says err "$name of its control group"
    says err "--batch $batch or --memory $((memory / 1048576))M; --force-memory"
    [ ! -e a ] || fail "a refused run left something behind"
    # each way out
    limited $file $between 0 plan r.ini --json --batch $batch --quiet
    json "j['machine']['holds']"
    limited $file $between 0 plan r.ini --json --batch $((batch + 1)) --quiet
    json "not j['machine']['holds']"
    limited $file $between 0 train r.ini --memory $((memory / 1048576))M --out b --quiet --force --json
    json "j['peak_rss_bytes'] <= $between"
    limited $file $between 0 train r.ini --force-memory --out c --quiet --force
    # nothing helps
    limited $file 1048576 3 train r.ini --out a
    says err "neither a smaller batch nor any --memory"
    # no limit at all
    for text in max -1 9223372036854771712 nonsense '' -; do
        limited $file "$text" 0 plan r.ini --set model.name=mlp --json --quiet
        json "j['machine'] == {'bytes': $host, 'source': 'memory of this machine', 'holds': True,
              'batch_that_fits': 0, 'memory_that_fits': 0}"
    done
done
# batch = auto tries none that is larger than what there is
limited $file 33554432 0 plan r.ini --batch auto --memory 100M --json --quiet
json "j['machine']['holds'] and j['peak_bytes'] <= 33554432"

# Without /proc neither peak nor limits of control groups are known; nothing is 0 for it.
mkdir no-proc
# shellcheck disable=SC2016 # for the inner shell
blind() { sandbox sh -c 'mount --bind no-proc /proc && exec "$@"' sh "$STINT" "$@" >out 2>err </dev/null || fail "stint $*: $(cat err)"; }
blind train r.ini --out blind
says out "peak memory not known here, planned"
grep -q ' 0 B' err out && fail "a memory of nothing: $(grep -h ' 0 B' err out)"
blind train r.ini --out blind --force --json
json "j['peak_rss_bytes'] is None and j['planned_peak_bytes'] > 0"
blind eval blind --data data --json
json "j['peak_rss_bytes'] is None"
grep -q '0 B' blind/report.html && fail "the report tells of a memory of nothing"

# CPU time
if grep -q '^0::' /proc/self/cgroup; then
    limited cpu.max "50000 100000" 0 --version --verbose --json
    [ "$(nproc)" -lt 2 ] || json "j['threads'] == 1 and 'cpu.max' in j['threads_why']"
    limited cpu.max "max 100000" 0 --version --verbose --json
    json "'cpu.max' not in j['threads_why']"
fi
finish
