# Compressed sums of steps that pack: with bits, bits a layer, the largest values only; with
# lanes and micro-batches, beside the backward pass or after it; over void steps, whose
# blocks were too small; interrupted and resumed. One recipe on as many ranks has one SHA-256.
. "$(dirname "$0")/ranks_lib.sh"
packed=(net.ini --json --set error.pack=all --set error.every=3 --set train.shards=5 --set train.batch=40
    --set run.checkpoint_every=1 --set run.keep=20 --steps 8)

both() { # NAME RANKS ARGUMENT...: beside the backward pass and after it, with 1 and 2 lanes
    local name=$1 ranks=$2
    shift 2
    begin "$ranks" "${packed[@]}" --out "$name" -j 2 "$@"
    all_end 0
    want=$(sha out.0)
    begin "$ranks" "${packed[@]}" --out "$name-after" -j 1 --set net.overlap=false "$@"
    all_end 0
    [ "$(sha out.0)" = "$want" ] || fail "$name: other weights when sums come after the backward pass"
}

grows() { grep -q '"event":"growth"' "$1/log.jsonl" || fail "$1: no block is too small"; }

resumes() { # NAME RANKS STEPS ARGUMENT...
    local name=$1 ranks=$2 steps=$3
    shift 3
    find "$name/checkpoints" -name 'step-*' | sort | tail -n +$((steps + 1)) | xargs rm
    begin "$ranks" "${packed[@]}" --out "$name" -j 1 --resume "$@"
    all_end 0
    [ "$(sha out.0)" = "$want" ] || fail "$name: resumed to other weights"
}

both four 2 --set net.bits=4
first=$want
resumes four 2 4 --set net.bits=4
begin 2 "${packed[@]}" --out exact
all_end 0
[ "$(sha out.0)" != "$first" ] || fail "nothing is compressed"

# Void steps before the first and before later ones.
both tight 3 --set net.bits=2 --error 1e-5
grows tight
resumes tight 3 1 --set net.bits=2 --error 1e-5
both kept 2 --set net.keep=0.05 --error 1e-5
grows kept
resumes kept 2 5 --set net.keep=0.05 --error 1e-5

# Bits of layers that are chosen, and micro-batches.
both chosen 2 --set net.bits=auto --set net.every=4 --set train.accumulate=2 --error 1e-4
grep -q '"event":"net"' chosen/log.jsonl || fail "no bits are chosen"

finish
