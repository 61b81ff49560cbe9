# stint trust bits: one value over the whole matrix, and where two runs part.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
# recipe NAME MODEL LINE...
recipe() {
    printf '[data]\npath = g\ncrop_pad = 2\n[model]\nname = %s\n' "$2" >"$1.ini"
    printf '%s\n' "${@:3}" >>"$1.ini"
}
recipe lenet lenet5 '[train]' 'batch = 36' 'shards = 3' '[optimizer]' 'name = adam' 'lr = 0.002'
recipe norm smallcnn-bn 'dropout = 0.3' '[train]' 'batch = 36' 'shards = 4'
for name in lenet norm; do
    run 0 trust bits $name.ini --steps 3 --chance 5 --json -q
    json_ok
    json 'j["same"] and j["distinct"] == 1 and j["steps"] == 3'
    json 'len(j["runs"]) >= 14 and len(set(r["sha256"] for r in j["runs"])) == 1'
    json '[r["sha256"] for r in j["runs"] if "processes" in r["name"]] == 2 * [j["runs"][0]["sha256"]]'
    json 'any("killed after step" in r["name"] for r in j["runs"])'
done
# The hash is of the optimiser too: the states of the log name its tensors.
grep -q '"optimizer.0.conv1.weight":"[0-9a-f]\{16\}"' runs/norm-bits/threads-1/log.jsonl ||
    fail "no optimiser state in the hashes"

run 2 trust bits lenet.ini --steps 2 --out runs/lenet-bits/threads-1
says err "holds a run"
run 2 trust bits norm.ini --steps 1
says err "2 or more"
run 2 trust bits norm.ini --steps 2 --with nothing
says err "section.key=value"
run 2 trust bits norm.ini --steps 2 --with train.nothing=1 -q
says err "train.nothing"
finish
