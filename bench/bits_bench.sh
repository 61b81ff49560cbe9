#!/usr/bin/env bash
# One value: SHA-256 of the weights of ResNet-20 after STEPS steps, by threads, lanes,
# instruction set, memory budget, and killed and resumed. Status 1 if any differs.
#   bench/bits_bench.sh DATA [STEPS]      DATA: a folder with train.tar; 200 steps
set -euo pipefail
cd "$(dirname "$0")/.."

data=${1:?usage: bench/bits_bench.sh DATA [STEPS]}
steps=${2:-200}
stint=${STINT:-build/release/stint}
unset STINT
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
common=(recipes/cifar10-resnet20.ini --data "$data" --steps "$steps" --set train.eval_every=0)
first=
different=0

field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

# report LABEL: the run whose JSON is in $work/json
report() {
    local sha
    sha=$(field "$work/json" weights_sha256)
    first=${first:-$sha}
    printf '%-28s %8.1f MiB  %s\n' "$1" \
        "$(python3 -c "print($(field "$work/json" peak_rss_bytes) / 2**20)")" "$sha"
    [ "$sha" = "$first" ] || different=1
}

train() { # LABEL ARGUMENT...
    local label=$1
    shift
    rm -rf "$work/run"
    "$stint" train "${common[@]}" --out "$work/run" --json --quiet "$@" >"$work/json"
    report "$label"
}

printf '%-28s %12s  %s\n' "$steps steps" "peak" "SHA-256 of the weights"
for j in 1 2 3; do train "-j $j" -j $j; done
train "-j 2, one lane" -j 2 --set run.lanes=1
# `ref` is plain scalar code for any CPU: hours here, so the tests prove it on small data.
for isa in ${ISAS:-$(grep -qw avx512f /proc/cpuinfo && echo avx2)}; do
    STINT_ISA=$isa train "STINT_ISA=$isa"
done
train "--memory 4G" --memory 4G
"$stint" plan "${common[@]}" --json >"$work/plan"
least=$(field "$work/plan" smallest_bytes)
train "--memory $(((least + 1048575) >> 20))M" --memory "$(((least + 1048575) >> 20))M"

rm -rf "$work/run"
"$stint" train "${common[@]}" --out "$work/run" --quiet --set run.checkpoint_every=20 \
    >/dev/null 2>&1 &
child=$!
while kill -0 $child 2>/dev/null &&
    ! compgen -G "$work/run/checkpoints/*.safetensors" >/dev/null; do sleep 0.1; done
kill -9 $child 2>/dev/null || true
wait $child 2>/dev/null || true
"$stint" train "${common[@]}" --out "$work/run" --resume --json --quiet \
    --set run.checkpoint_every=20 >"$work/json"
report "killed, --resume"

[ "$different" = 0 ] && echo "one value" || { echo "NOT one value" >&2; exit 1; }
