#!/usr/bin/env python3
"""A covering set of trainings: of any two features that `stint help combinations --json`
names for a kind of network, both are in one run, or the pair is refused by its sentence.

usage: combinations.py STINT DATA KIND [RUNS]

Of each run: it ends well; its peak is within what was planned; one and two threads give
the same weights, and so does a run that is killed and resumed; so do two processes, but
for compressed sums, which are of as many processes as there are: these runs are all of
two. The loss falls. Without RUNS all of them are made, else so many."""
import itertools
import json
import os
import random
import signal
import subprocess
import sys

stint, data, kind = sys.argv[1:4]
most = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
KINDS = {"images": "networks of images", "text": "a model of text", "field": "a field"}
MODEL = {
    "images": ["model.name=resnet8", "model.width=4", "data.size=16", "optimizer.lr=0.005"],
    "text": ["model.name=gpt", "model.width=16", "model.depth=1", "model.context=16",
             "data.tokenizer=char", "train.steps=0", "optimizer.lr=0.01", "optimizer.name=adam"],
    "field": ["model.name=siren", "model.width=16", "model.depth=1", "optimizer.lr=0.001",
              "train.steps=0",
              "optimizer.name=adam"],
}
CLASSES = 2  # of tests/cli/cli_data.py
LARGEST = 8  # features of a run
# In one run whatever is drawn, where a kind has them all: three ways to hold what the
# backward half reads, and who else runs forward.
TOGETHER = [["bf16", "packing", "reference"]]
failures = 0


def fail(words):
    global failures
    failures += 1
    print("FAIL:", words, file=sys.stderr)


meetings = itertools.count()


def begin(out, sets, *more, ranks=1):
    """The processes of a training, of which the first tells."""
    command = [stint, "train", "--data", data, "--out", out, "--json", "--quiet", "--epochs",
               "3", "--batch", "16", "--shards", "2", *more]
    for s in MODEL[kind] + sets:
        command += ["--set", s]
    if ranks > 1:
        command += ["--net-root", f"@covering-{os.getpid()}-{next(meetings)}", "--net-ranks",
                    str(ranks)]
    return [subprocess.Popen(command + (["--net-rank", str(r)] if ranks > 1 else []),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for r in range(ranks)]


def end(processes):
    words = [p.communicate() for p in processes]
    p = processes[0]
    return subprocess.CompletedProcess(p.args, p.returncode, *words[0])


def train(out, sets, *more, ranks=1):
    return end(begin(out, sets, *more, ranks=ranks))


def answer(run):
    return json.loads(run.stdout.splitlines()[-1])


table = json.loads(subprocess.run([stint, "help", "combinations", "--json"],
                                  capture_output=True, text=True, check=True).stdout)
features = {f["name"]: f["example"].replace("START", "base").replace("REFERENCE", "base")
            .replace("WEIGHTS", ",".join(["1", "2"] * 8)[:2 * CLASSES - 1]).split()
            for f in table["features"] if KINDS[kind] in f["kinds"]}
refused = {frozenset((r["a"], r["b"])): r["why"] for r in table["refused"]}
statuses = {frozenset((r["a"], r["b"])): r["status"] for r in table["refused"]}


def key_clash(a, b):
    """Two features that set one key to two values are choices of one thing."""
    x = dict(s.split("=", 1) for s in features[a])
    y = dict(s.split("=", 1) for s in features[b])
    return any(k in y and y[k] != v for k, v in x.items())


def held_by(name):
    """A feature and those whose keys are among its own."""
    return [f for f in features if set(features[f]) <= set(features[name])]


def may_join(name, chosen):
    return all(not key_clash(name, c) and
               not any(frozenset(p) in refused
                       for p in itertools.product(held_by(name), held_by(c)))
               for c in chosen)


def cover():
    draw = random.Random(1)
    names = sorted(features)
    left = {frozenset(p) for p in itertools.combinations(names, 2)
            if p[0] != p[1] and may_join(p[0], [p[1]])}
    wanted = [run for run in TOGETHER if all(name in features for name in run)]
    while left:
        chosen = list(wanted.pop() if wanted else sorted(sorted(map(sorted, left))[0]))
        for name in draw.sample(names, len(names)):
            if len(chosen) < LARGEST and name not in chosen and may_join(name, chosen) and \
                    any(frozenset((name, c)) in left for c in chosen):
                chosen.append(name)
        left -= {frozenset(p) for p in itertools.combinations(chosen, 2)}
        yield sorted(chosen)


def settings(chosen):
    return sorted({s for name in chosen for s in features[name]})


def check_refused():
    for pair, why in refused.items():
        a, b = sorted(pair)
        if a in features and b in features:
            run = train("never", settings([a, b]))
            if run.returncode != statuses[pair] or why not in run.stderr:
                fail(f"{a}, {b}: status {run.returncode}: {run.stderr.strip()}")
            if os.path.exists("never"):
                fail(f"{a}, {b}: refused, but wrote its folder")


def killed(out, sets, ranks):
    """The weights of a run that is killed in its second half, and gone on with."""
    more = ["--set", "run.checkpoint_every=5", "-j", "1"]
    processes = begin(out, sets, *more, ranks=ranks)
    while processes[0].poll() is None:
        if os.path.isdir(out + "/checkpoints") and any(
                n.endswith("0.safetensors") for n in os.listdir(out + "/checkpoints")):
            for p in processes:
                p.send_signal(signal.SIGKILL)
            break
    end(processes)
    return answer(train(out, sets, *more, "--resume", ranks=ranks))


def check_run(number, chosen):
    sets = settings(chosen)
    out = f"run{number}"
    # (An update within the step is of one process, which has nothing to send.)
    ranks = 2 if "net bits" in chosen and "at once" not in chosen else 1
    runs = [train(f"{out}-{threads}", sets, "-j", str(threads), ranks=ranks)
            for threads in (1, 2)]
    if ranks == 1 and "at once" not in chosen:
        runs.append(train(f"{out}-r", sets, "-j", "1", ranks=2))
    for run in runs:
        if run.returncode != 0:
            return fail(f"{', '.join(chosen)}: status {run.returncode}: {run.stderr.strip()}")
    one, two, *apart = map(answer, runs)
    if one["weights_sha256"] != two["weights_sha256"]:
        fail(f"{', '.join(chosen)}: one and two threads end in other weights")
    if apart and apart[0]["weights_sha256"] != one["weights_sha256"]:
        fail(f"{', '.join(chosen)}: one and two processes end in other weights")
    if killed(out + "-k", sets, ranks)["weights_sha256"] != one["weights_sha256"]:
        fail(f"{', '.join(chosen)}: killed and resumed, it ends in other weights")
    for r in (one, two):
        if r["peak_rss_bytes"] > r["planned_peak_bytes"] and "STINT_ASAN" not in os.environ:
            fail(f"{', '.join(chosen)}: peak {r['peak_rss_bytes']}, planned "
                 f"{r['planned_peak_bytes']}")
    losses = [json.loads(line) for line in open(f"{out}-1/log.jsonl")]
    losses = [e["train_loss"] for e in losses if e.get("event") == "epoch"]
    # (What begins with a trained model may have little left to learn.)
    if not any("=base" in s for s in sets) and not losses[-1] < losses[0]:
        fail(f"{', '.join(chosen)}: the loss went {losses}")
    print(f"{len(chosen):2} features, loss {losses[0]:.3f} to {losses[-1]:.3f}: "
          f"{', '.join(chosen)}")


base = train("base", [])
if base.returncode != 0:
    sys.exit(f"the model to begin from: {base.stderr}")
check_refused()
runs = list(cover())
for number, chosen in enumerate(runs[:most]):
    check_run(number, chosen)
print(f"{len(runs)} runs cover {kind}: {len(features)} features; {failures} failures")
sys.exit(failures > 0)
