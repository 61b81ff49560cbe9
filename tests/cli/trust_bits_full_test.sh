# stint trust bits: ResNet-20, a transformer, and differences that are there are found where they are.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
run 0 data glyphs --out g --train 288 --test 36 --min-faces 10 -q
# recipe NAME MODEL LINE...
recipe() {
    printf '[data]\npath = g\ncrop_pad = 2\n[model]\nname = %s\n' "$2" >"$1.ini"
    printf '%s\n' "${@:3}" >>"$1.ini"
}
recipe res resnet20 'dropout = 0.1' '[train]' 'batch = 36' 'shards = 4' '[optimizer]' 'lr = 0.05'
run 0 trust bits res.ini --steps 3 --json -q
json 'j["same"] and j["distinct"] == 1 and len(j["runs"]) >= 12'

# A transformer with dropout, on text.
awk 'BEGIN { for (i = 0; i < 3000; i++) print i * 7919 % 1000, "and", i % 37 }' >text.txt
printf '%s\n' '[model]' 'name = gpt' 'depth = 1' 'width = 32' 'heads = 2' 'context = 32' \
    'dropout = 0.1' '[data]' 'path = text.txt' 'tokenizer = char' '[train]' 'batch = 16' \
    '[optimizer]' 'name = adamw' 'lr = 3e-3' >gpt.ini
XDG_CACHE_HOME=$work/cache run 0 trust bits gpt.ini --steps 3 --json -q
json 'j["same"] and j["distinct"] == 1 and len(j["runs"]) >= 12'

# Real differences are found, at their step. Of 8 steps an epoch, a milestone after epoch
# 1 slows the ninth step down: the state after it is the first to differ.
recipe steps smallcnn-bn '[train]' 'batch = 36' 'shards = 4' '[schedule]' 'name = step' 'milestones = 2'
run 1 trust bits steps.ini --steps 10 --out m --json -q \
    --with noise.ulp=3,noise.order=1,schedule.milestones=1,run.log_every=2
json 'not j["same"] and [r["same"] for r in j["runs"][-4:]] == [False, False, False, True]'
json 'j["runs"][-4]["first_step"] == 0 and j["runs"][-2]["first_step"] == 9'
json 'j["runs"][-3]["first_step"] >= 1 and j["runs"][-2]["first_tensor"] == "conv1.weight"'
tensor=$(python3 -c 'import json; print(json.load(open("out"))["runs"][-4]["first_tensor"])')
# Noise that is asked for is the same however it is made.
run 0 trust bits steps.ini --set noise.order=5 --steps 2 --out n --json -q
json 'j["same"]'
# The same flip, seen in the weights of one step that is as good as none.
run 0 train steps.ini --steps 1 --set optimizer.lr=1e-30 --out plain -q
run 0 train steps.ini --steps 1 --set optimizer.lr=1e-30 --set noise.ulp=3 --out flip -q
run 1 diff plain flip --json
json "[d['name'] for d in j['differences'] if d['name'].endswith('weight')] == ['$tensor']"
json "[(d['different'], d['ulp_histogram'][1]) for d in j['differences'] if d['name'] == '$tensor'] == [(1, 1)]"

finish
