# What a network remembers of a text: a passage that nothing else in the text foretells is
# found, figures are those of the files, runs are kept, one or two at a time are the same.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python3 - <<'PY'
import random
draw = random.Random(3)
lines = ["the cat sat on a mat", "a dog saw the red cat", "the mat was on the dog"]
passages = ["".join(draw.choice(lines) + " " for _ in range(3))[:32] for _ in range(60)]
odd = "".join(draw.choice("qxzjkvwypbfg") for _ in range(32))
passages[17] = odd
open("odd.txt", "w").write(odd)
open("text.txt", "w").write("".join(passages) + "the cat sat on a mat and more of it")
PY
cat >tiny.ini <<'INI'
[model]
name = gpt
width = 32
heads = 4
depth = 1
context = 32
[data]
tokenizer = char
validation = 0.02
[optimizer]
name = adam
lr = 0.01
clip = 1
[train]
steps = 150
batch = 8
shards = 1
INI
study() {
    run 0 trust memory tiny.ini --data text.txt --set run.out="$1" --runs 12 --fraction 0.5 --json --quiet "${@:2}"
}
study one --jobs 1
json_ok
json "j['passages'] == 58 and j['context'] == 32 and j['members'] == 29 and j['runs_done'] == 12"
json "j['most_memorised'][0]['index'] == 17 and j['most_memorised'][0]['text'] == open('odd.txt').read()"
json "j['most_memorised'][0]['memorisation'] > 2 * j['most_memorised'][1]['memorisation']"
json "j['seen_loss'] < j['unseen_loss'] and j['memorised'] >= 1 and j['memorised_by_chance'] < j['memorised']"
cp out one.json
[ -s one/memory.html ] && [ "$(wc -l <one/memorised.tsv)" -eq 59 ] || fail "no page, or no list"
python3 - <<'PY' || fail "figures are not those of the files"
import array, json, math
def load(name, kind):
    data = open("one/" + name, "rb").read()
    return array.array(kind, data[10 + int.from_bytes(data[8:10], "little"):])
j = json.load(open("one.json"))
n = j["passages"]
member, loss = load("members.npy", "B"), load("losses.npy", "f")
assert len(member) == len(loss) == 12 * n and all(sum(member[r * n:r * n + n]) == 29 for r in range(12))
for p in j["most_memorised"]:
    seen = [loss[r * n + p["index"]] for r in range(12) if member[r * n + p["index"]]]
    rest = [loss[r * n + p["index"]] for r in range(12) if not member[r * n + p["index"]]]
    mean = lambda x: sum(x) / len(x)
    var = lambda x: sum((v - mean(x)) ** 2 for v in x) / (len(x) - 1) / len(x)
    assert abs(p["memorisation"] - (mean(rest) - mean(seen))) < 1e-6, p
    assert abs(p["error"] - math.sqrt(var(rest) + var(seen))) < 1e-6, p
PY
study two --jobs 2
cmp -s one/losses.npy two/losses.npy && cmp -s one/memorisation.npy two/memorisation.npy ||
    fail "two at a time: other losses"
rm one/runs/00003.bits && truncate -s 50 one/runs/00007.bits
study one
json "j['runs_done'] == 2"
cmp -s one/losses.npy two/losses.npy || fail "made again: other losses"
run 2 trust memory tiny.ini --data text.txt --set run.out=one --runs 12 --fraction 0.6 --quiet
says err 'its runs are of another kind'
finish
