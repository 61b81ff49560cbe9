# The commands of docs/growing-batches.md, run in their order in an empty folder, and the
# figures that the page and the plan foretell.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
export XDG_CACHE_HOME=$work/cache
page=$STINT_SOURCE/docs/growing-batches.md
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$page" |
        sed "s/@grow/@$(basename "$work")/"
} >script
[ "$(wc -l <script)" -gt 10 ] || fail "few commands found"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
# The stages as the page shows them.
sed -n '/^ *from epoch/,/^ *A rank sends/s/^ *//p' "$page" | while read -r line; do
    sed 's/^ *//' "$work/out" | grep -qxF "$line" || echo "$line"
done >missing
[ ! -s missing ] || fail "the plan does not say: $(head -1 missing)"

run 0 plan grow.ini --net-ranks 2 --json
cp "$work/out" plan.json
python3 - <<'PY' || fail "figures of the run"
import json, math
plan, one, two, fixed = (json.load(open(n + ".json")) for n in ("plan", "one", "two", "fixed"))
stages = plan["stages"]
assert [s["batch"] for s in stages] == [32, 64, 128]
assert [s["steps"] for s in stages] == [28, 14, 8] and one["steps"] == 50
assert all(math.isclose(s["lr_factor"], 0.75 ** i) for i, s in enumerate(stages))
assert one["batch_first"] == 32 and one["batch"] == 128
assert fixed["batch"] == 32 and fixed["steps"] == 84
assert one["weights_sha256"] == two["weights_sha256"] != fixed["weights_sha256"]
# Beside the sums, ranks compare recipes and share the first weights.
sums = 2 * plan["run_rank_bytes"]
assert sums <= two["net_bytes"] <= 1.05 * sums, (sums, two["net_bytes"])
lines = [json.loads(l) for l in open("runs/one/log.jsonl") if '"event":"step"' in l]
assert lines[-1]["step"] == 50 and lines[-1]["batch"] == 64
for s in lines: # a batch that the epoch's end cuts has its share of the rate
    stage = (s["step"] > 28) + (s["step"] > 42)
    want = 0.05 * 0.75 ** stage * s["batch"] / stages[stage]["batch"]
    assert math.isclose(s["lr"], want, rel_tol=1e-12), s
PY
finish
