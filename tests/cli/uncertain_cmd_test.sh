# stint eval and stint run with --samples and --ensemble: figures against NumPy, the same
# networks for any batch and threads, the page, and what is refused.
. "$(dirname "$0")/cli_lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
"$python" -c "import numpy" 2>/dev/null || { echo "skipped: $python has no numpy"; exit 77; }
cd "$work" || exit 1
oracle() { PYTHONDONTWRITEBYTECODE=1 "$python" "$here/uncertain_numpy.py" "$@"; }
oracle data . || exit 1
cat >net.ini <<'INI'
[model]
name = mlp
width = 24
dropout = 0
[data]
path = known
[train]
epochs = 3
batch = 20
[optimizer]
lr = 0.03
INI
run 0 train net.ini --out plain -q
run 0 train net.ini --set model.dropout=0.4 --out dropout -q
run 0 train net.ini --seed 2 --out other -q
run 0 train net.ini --set model.dropout=0.4 --bayes 1 --set bayes.generator=philox \
    --set bayes.sigma=0.2 --set bayes.kl=0.01 --out drawn -q

check() { # SAMPLES SEED MODEL..., after a run with --json
    oracle check out known strange "$1" "$2" $(printf '%s/model.safetensors ' "${@:3}") ||
        fail "not as in NumPy: $*"
}
run 0 eval dropout --samples 7 --seed 3 --ood strange --json
check 7 3 dropout
json 'j["ood_count"] == 90 and j["count"] == 150 and j["kl"] is None and j["sigma"] is None'
json '0 < j["mutual_information"] < j["entropy"]'
run 0 eval drawn --samples 9 --seed 5000000000 --ood strange --json
check 9 5000000000 drawn
run 0 eval plain --ensemble other,dropout --ood strange --json
check 0 0 plain other dropout
json 'j["networks"] == 3 and j["samples"] == 0'
run 0 eval dropout --ensemble drawn --samples 4 --ood strange --json
check 4 0 dropout drawn

# The same networks, whatever the batch, the threads and the other images.
same() { # the answer without what time and memory say
    sed 's/"images_per_s":[^,]*,//; s/"peak_rss_bytes":[^,]*,//' out
}
run 0 eval drawn --samples 5 --threads 1 --batch 150 --json
same >first
for way in '--threads 2 --batch 7' '--threads 3 --batch 1' '--threads 2 --batch 64'; do
    run 0 eval drawn --samples 5 $way --json # (two words)
    same | cmp -s - first || fail "other answers with $way"
done
STINT_ISA=ref run 0 eval drawn --samples 5 --json
same | cmp -s - first || fail "other answers by plain loops"
run 0 eval drawn --samples 5 --seed 1 --json
same | cmp -s - first && fail "another seed draws the same networks"

# Without samples: means alone, and no dropout.
run 0 eval drawn --json
json '"entropy" not in j and "networks" not in j'

# One image: the same networks as eval has; deviations of Monte-Carlo size.
python3 - <<'PY'
import struct, zlib
pixels = open("known/t10k-images-idx3-ubyte", "rb").read()[16:16 + 64]
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\0" + pixels[8 * y:8 * y + 8] for y in range(8))
open("first.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run 0 run drawn first.png --samples 200 --json
json 'all(0 < c["deviation"] < 0.5 for c in j["predictions"][0]["classes"])'
json '0 < j["predictions"][0]["mutual_information"] < j["predictions"][0]["entropy"] < 1.0986123'
run 0 run drawn first.png --samples 200 --top 1
grep -Eq '^first.png	[0-2] [0-9.]+ % \+- [0-9.]+	entropy [0-9.]+ nats, [0-9.]+ of it from the weights$' out ||
    fail "other words: $(cat out)"
run 0 run dropout first.png --samples 3
run 0 run drawn first.png first.png --samples 1 --json
json 'j["predictions"][0] == j["predictions"][1] and j["predictions"][0]["mutual_information"] == 0'

# The page.
run 0 eval drawn --samples 5 --ood strange --page sure.html
grep -q "How sure the answers are" sure.html || fail "no heading"
[ "$(grep -c '<svg' sure.html)" -ge 3 ] || fail "fewer than three charts"
[ "$(grep -o 'data:image/png' sure.html | wc -l)" -eq 48 ] || fail "not 48 pictures"
run 5 eval drawn --samples 5 --page no/such/sure.html

# What is refused.
run 2 eval plain --samples 3
says err "nothing in plain/model.safetensors is random"
run 2 eval plain --samples 3 --ensemble other
run 2 run plain first.png --samples 3
says err "nothing in plain/model.safetensors is random"
run 2 eval plain --ood strange
says err "--samples N, or --ensemble"
run 2 eval plain --page sure.html
cp drawn/model.safetensors kept
run 2 eval drawn --samples 2 --page drawn/model.safetensors
says err "written over"
run 2 eval other --ensemble drawn --page drawn/model.safetensors
cmp -s kept drawn/model.safetensors || fail "a page is written over the model"
run 2 eval drawn --samples -1
run 2 eval drawn --samples many
run 4 eval plain --ensemble other,other
says err "has the weights of"
run 4 eval plain --ensemble plain
run 5 eval plain --ensemble nowhere
run 4 eval drawn --samples 2 --ood nowhere
run 0 train net.ini --data strange --out two -q
run 4 eval plain --ensemble two
says err "tells 2 classes apart"
finish
