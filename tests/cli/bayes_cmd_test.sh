# Bayesian networks by the command line: memory does not grow with samples, models that
# lack a spread or have a bad one are refused, and so is what makes no sense.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
cat >b.ini <<'INI'
[data]
path = g
[model]
name = smallcnn
[train]
batch = 24
shards = 2
epochs = 2
[optimizer]
name = adam
lr = 0.002
[bayes]
samples = 2
deviation = 0.2
kl_course = ramp
kl_ramp = 1
INI
run 0 train b.ini --out runs/b --json -q
json 'j["kl"] > 0 and 0.019 < j["sigma"][0] <= j["sigma"][1] <= j["sigma"][2] < 0.2'
json 'j["steps"] == 24 and 0 <= j["test_accuracy"] <= 1'
run 0 eval runs/b --json
run 0 train b.ini --out runs/words
says out "divergence from the prior"
run 0 train b.ini --bayes 0 --out runs/plain --json -q
json '"kl" not in j and "sigma" not in j'
run 0 train b.ini --start runs/plain --out runs/after --steps 2 -q
run 0 train b.ini --bayes 0 --start runs/b --out runs/before --steps 2 -q

# Memory: as planned, and the same for any number of samples.
for s in 1 64; do
    run 0 train b.ini --set model.name=mlp --set model.width=600 --batch 8 --steps 2 \
        --bayes $s --out "runs/m$s" --json -q
    cp "$work/out" m$s.json
done
python3 - <<'PY' || fail "memory grows with samples"
import json
one, many = (json.load(open(f"m{s}.json")) for s in (1, 64))
assert one["planned_peak_bytes"] == many["planned_peak_bytes"]
assert many["peak_rss_bytes"] <= 1.02 * one["peak_rss_bytes"], (one, many)
PY

# Spreads that are missing, of another shape, or no numbers.
cat >damage.py <<'PY'
import json, struct, sys
raw = open("runs/b/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head, data = json.loads(raw[8:8 + n]), bytearray(raw[8 + n:])
name = next(k for k in head if k.endswith("conv1.weight.rho"))
how, at = sys.argv[1], head[name]["data_offsets"][0]
if how == "missing":
    head[name + "x"] = head.pop(name)
elif how == "shape":
    head[name]["shape"] = [len(data[at:head[name]["data_offsets"][1]]) // 4]
else:
    data[at:at + 4] = struct.pack("<f", float(how))
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open("bad.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
for how in missing shape nan inf; do
    python3 damage.py $how || fail "damage.py"
    run 4 eval bad.safetensors --data g
    says err "conv1.weight.rho"
done

# Refused: status 2, and 8 where it is not there for a kind of network.
refuse() { # STATUS WORDS OPTION...
    run "$1" train b.ini --out runs/no "${@:3}"
    says err "$2"
    [ ! -e runs/no ] || fail "a folder is left by: ${*:3}"
}
refuse 2 "bayes.deviation" --set bayes.deviation=0
refuse 2 "bayes.deviation" --set bayes.deviation=-1
refuse 2 "bayes.sigma" --set bayes.sigma=0
refuse 2 "wide_share" --set bayes.wide_share=1
refuse 2 "bayes.narrow" --set bayes.prior=mixture --set bayes.narrow=0.3
refuse 2 "not primitive" --set bayes.generator=lfsr256 --set bayes.taps=256,248,246,241
refuse 2 "wanted four falling" --set bayes.generator=lfsr64 --set bayes.taps=256,10,5,2
refuse 2 "bayes.taps" --set bayes.taps=256,10,5,2
refuse 2 "local draws outputs" --set bayes.generator=lfsr64 --set bayes.estimator=local
refuse 2 "quantise.bits" --set quantise.bits=4
refuse 2 "prune.sparsity" --sparsity 0.5
refuse 2 "grow.by" --grow noise
refuse 2 "bayes" --bayes 129
printf 'to be or not to be\n%.0s' $(seq 200) >text.txt
run 8 train --set model.name=gpt --set model.depth=1 --set model.width=32 \
    --set model.heads=2 --set model.context=16 --data text.txt --bayes 2 --out runs/no
says err "bayes.samples"
finish
