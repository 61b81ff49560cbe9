# The program itself, which writes a checkpoint after every step, killed (SIGKILL) at 20
# random instants, ten of them in the midst of writing a random one, then once more while
# it resumes: the weights of an uninterrupted run, never a checkpoint that cannot be read. (crash_full_test.c does the same through the library.)
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 12 256 32
# Wide, so that much of the time goes into writing.
cat >r.ini <<'INI'
[model]
name = mlp
width = 500
[data]
path = data
[train]
epochs = 2
batch = 16
shards = 2
seed = 3
[optimizer]
lr = 0.01
momentum = 0.9
[run]
checkpoint_every = 1
INI

python3 - "$STINT" <<'PY' || fail "a killed run"
import glob, json, os, random, signal, subprocess, sys, time
stint = sys.argv[1]
seed = 20261120
rng = random.Random(seed)

def start(out, *more):
    return subprocess.Popen([stint, "train", "r.ini", "--out", out, "--json", "--quiet", *more],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

def finish(out, *more):
    p = start(out, *more)
    text, err = p.communicate()
    assert p.returncode == 0, err
    return json.loads(text)["weights_sha256"]

def check(out):
    """Whole under their names: header and data of the length that it states."""
    for path in glob.glob(out + "/**/*.safetensors", recursive=True):
        with open(path, "rb") as f:
            head = int.from_bytes(f.read(8), "little")
            entries = json.loads(f.read(head))
        end = max(e["data_offsets"][1] for k, e in entries.items() if k != "__metadata__")
        assert os.path.getsize(path) == 8 + head + end, path

def half_written(out):
    return glob.glob(out + "/checkpoints/*.part*")

def await_writing(p, out, nth):
    """Until the nth checkpoint is being written: seen as a new name that is not final."""
    seen = set()
    while p.poll() is None and len(seen) < nth:
        seen |= set(half_written(out))

began = time.monotonic()
whole = finish("whole")
length = time.monotonic() - began
midst = writing = killed = 0

def kill(out, wait):
    global midst, writing, killed
    p = start(out, *(["--resume"] if os.path.exists(out) else []))
    wait(p)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    if p.returncode == -signal.SIGKILL:
        killed += 1
        midst += bool(glob.glob(out + "/checkpoints/*.safetensors"))
        writing += bool(half_written(out))
    check(out)

for instant in range(20):
    out = f"k{instant}"
    if instant % 2:
        nth, pause = rng.randint(1, 12), rng.random() * 0.001
        kill(out, lambda p: (await_writing(p, out, nth), time.sleep(pause)))
    else:
        after = rng.random() * length
        kill(out, lambda p: time.sleep(after))
    after = rng.random() * length / 2
    kill(out, lambda p: time.sleep(after))
    got = finish(out, *(["--resume"] if os.path.exists(out) else []))
    assert got == whole, f"instant {instant}: other weights"
    subprocess.run(["rm", "-rf", out])
print(f"seed {seed}: {killed} kills, {midst} with checkpoints there, {writing} while one was written")
assert killed >= 20 and midst >= 10 and writing >= 3, "too few kills in the midst of a run"
PY
finish
