# Micro-batches that grow: one value over all that must not matter, the figures of batches
# that grow by their number alone where there is no batch-norm, memory as planned, and what
# is refused.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
# recipe NAME NETWORK LINE...: 288 images are 24 units of 12; no stage divides them all
recipe() {
    printf '[data]\npath = g\nsize = 14\ncrop_pad = 2\n[model]\nname = %s\n' "$2" >"$1.ini"
    printf '[train]\nbatch = 12\nshards = 3\nepochs = 5\n' >>"$1.ini"
    printf '[optimizer]\nlr = 0.02\n[grow]\nby = schedule\nevery = 1\nmost = 144\n' >>"$1.ini"
    printf '%s\n' "${@:3}" >>"$1.ini"
}
recipe norm smallcnn-bn 'images = 16'
run 0 trust bits norm.ini --steps 48 --chance 5 --json -q
json 'j["same"] and j["distinct"] == 1 and j["steps"] == 48'
json 'sum("processes" in r["name"] for r in j["runs"]) == 2'

# Stages: micro-batches of 4, 8 and 16 images, then two of 16, then the rate alone falls.
run 0 plan norm.ini --json
json '[s["images"] for s in j["stages"]] == [4, 8, 16, 16, 16]'
json '[s["accumulate"] for s in j["stages"]] == [1, 1, 1, 2, 2]'
json '[s["batch"] for s in j["stages"]] == [12, 24, 48, 96, 96]'
json '[s["steps"] for s in j["stages"]] == [24, 12, 6, 3, 3]'
json 'abs(j["stages"][4]["lr_factor"] - 0.75**3 * 0.375) < 1e-12'

# An epoch whose end cuts a stage: 24 units are four batches of 5 and one of 4; micro-batches
# of 5 times the images leave 4 units out.
recipe cut smallcnn-bn 'images = 20' 'factor = 5'
run 0 train cut.ini --out runs/cut --set run.log_every=1 --json -q
json 'j["steps"] == 24 + 4 * 4'
python3 - <<'PY' || fail "batches of cut.ini"
import json
lines = [json.loads(l) for l in open("runs/cut/log.jsonl") if '"event":"step"' in l]
assert [s["batch"] for s in lines] == [12] * 24 + [60] * 16
assert abs(lines[24]["lr"] / lines[0]["lr"] - 0.75) < 1e-12
assert abs(lines[28]["lr"] / lines[0]["lr"] - 0.75 * 0.15) < 1e-12
PY

# Without batch-norm it does not matter how a batch is cut.
recipe cut-up smallcnn 'images = 16'
recipe plain smallcnn
for name in cut-up plain; do
    run 0 train $name.ini --set data.crop_pad=0 --out runs/$name --json -q
    cp out $name.json
done
python3 - <<'PY' || fail "the same images in other micro-batches"
import json
a, b = (json.load(open(n + ".json")) for n in ("cut-up", "plain"))
assert a["steps"] == b["steps"] and a["weights_sha256"] != b["weights_sha256"]
assert abs(a["test_loss"] - b["test_loss"]) < 2e-3 * b["test_loss"], (a["test_loss"], b["test_loss"])
PY

# The peak is the largest stage's, and a budget below it is refused with what fits.
peak() { # [ARGUMENT...]
    run 0 plan norm.ini "$@" --json
    python3 -c 'import json; print(json.load(open("out"))["peak_bytes"])'
}
small=$(peak --set grow.images=0) large=$(peak)
[ "$large" -gt $((small + 100000)) ] || fail "peaks of $small and $large bytes"
if ! grep -q '^STINT_SANITIZE:STRING=.' "$STINT_BUILD/CMakeCache.txt"; then
    run 0 train norm.ini --out runs/norm --json -q
    json "j['peak_rss_bytes'] <= $large"
fi
run 3 train norm.ini --out runs/none --memory $((small + 50000)) --set grow.images=64 -q
says err "--set grow.images="
[ ! -e runs/none ] || fail "a refused run left a folder"

# Killed in a later stage, and resumed there.
run 0 train norm.ini --out runs/short --set train.steps=40 -q
run 0 train norm.ini --out runs/whole --json -q
json 'j["steps"] == 48'
run 2 train norm.ini --set grow.images=8 --out runs/short --resume -q
says err "grow.images"

run 2 train norm.ini --set grow.by=noise -q
says err "grow by schedule alone"
run 2 train norm.ini --set grow.images=3 -q
says err "less than the first micro-batch of 4"
run 2 train norm.ini --scheme 'prune(0.5)' --start runs/whole --out runs/scheme -q
says err "grow.by: the steps of a compression scheme are of one batch"
finish
