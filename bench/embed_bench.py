#!/usr/bin/env python3
"""Tables of embeddings beside their peers: what ours does and what the peer's does, a line each.

    bench/embed_bench.py [--stint build/release/stint] [--torch PYTHON] [PART...]

    hits TRACE   hit ratios on a trace (libCacheSim's cloudPhysicsIO.oracleGeneral.bin), beside
                 libCacheSim (pip install libcachesim; run this by a Python that has it) and,
                 for the static order, a loop of this file                            20 s
    misses TEXT  rows missing a step, 1.5 % of rows cached, a window of 256 batches: Zipf 1.05,
                 and pairs of words of a text (of texts that Debian installs where no file is named),
                 beside the static order and LRU                                      60 s
    ram          a step with all rows in memory, 26 fields, rows of 64, beside PyTorch's
                 EmbeddingBag(sparse=True) in the same model (--torch)               150 s
    cached       a step with 1.5 % of the rows in memory, beside our own with all, and beside
                 the pages that it moved by the rate of the disk                      90 s
    mapped       examples a second of tables of 20 budgets and more, beside PyTorch on a mapped
                 file (torch.from_file) in a control group of the same limit (--torch) 150 s

Loaded machines tell lies: parts that measure time go A B A B and print every pair."""
import argparse
import heapq
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def run(args, *command, limit=None, **more):
    """A command of ours, its JSON."""
    command = [args.stint, *map(str, command), "--json", "-q"]
    done = subprocess.run(inside(limit, command), capture_output=True, text=True,
                          cwd=args.folder, env=args.env, **more)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.strip()))
    return json.loads(done.stdout)


# ---- hit ratios ----

def static_oracle(trace, slots):
    """The data set's order: the most frequent ids are there at first; the victim is the least
    frequent one. Ties by first appearance."""
    count, first = {}, {}
    for i, k in enumerate(trace):
        count[k] = count.get(k, 0) + 1
        first.setdefault(k, i)
    rank = {k: r for r, k in enumerate(sorted(count, key=lambda k: (-count[k], first[k])))}
    there = {k for k in rank if rank[k] < slots}
    heap = [(-rank[k], k) for k in there]
    heapq.heapify(heap)
    hits = 0
    for k in trace:
        if k in there:
            hits += 1
            continue
        there.remove(heapq.heappop(heap)[1])
        there.add(k)
        heapq.heappush(heap, (-rank[k], k))
    return hits / len(trace)


def hits(args):
    if not args.rest:
        sys.exit("hits: name a trace of libCacheSim's oracleGeneral format")
    path = os.path.abspath(args.rest.pop(0))
    with open(path, "rb") as f:
        trace = [r[1] for r in struct.iter_unpack("<IQIq", f.read())]
    try:
        import libcachesim as lcs
    except ImportError:
        lcs = None
        print("(no libcachesim in this Python: our loop alone)")
    distinct = len(set(trace))
    print("hits: %d requests of %d ids" % (len(trace), distinct))

    def peer(name, slots):
        reader = lcs.TraceReader(trace=path, trace_type=lcs.TraceType.ORACLE_GENERAL_TRACE,
                                 reader_init_params=lcs.ReaderInitParam(ignore_obj_size=True))
        return 1 - getattr(lcs, name)(cache_size=slots).process_trace(reader)[0]

    for slots in (489, 2448, 4897, 9794):
        for policy in ("lru", "lfu", "static", "future"):
            ours = run(args, "bench", "embedding", path, "--cache", slots, "--policy",
                       policy)["hit_ratio"]
            if policy == "static":
                theirs, who = static_oracle(trace, slots), "our loop"
            elif not lcs:
                continue
            elif policy == "future":  # what it begins with are misses of a cold cache
                theirs, who = peer("Belady", slots) + slots / len(trace), "Belady, warm"
            else:
                theirs, who = peer(policy.upper(), slots), "libCacheSim"
            print("  %5d of %d  %-7s ours %.4f  %s %.4f  %s" %
                  (slots, distinct, policy, ours, who, theirs,
                   "ok" if abs(ours - theirs) <= 0.002 else "DIFFERS"))


# ---- missing rows ----

def zipf(rows, exponent, count, rng):
    """Ids by Zipf's law, by inversion of the cumulative weights."""
    import bisect
    sums, total = [], 0.0
    for k in range(1, rows + 1):
        total += k ** -exponent
        sums.append(total)
    return [bisect.bisect_left(sums, rng.random() * total) for _ in range(count)]


def word_pairs(args):
    """A number for each pair of neighbouring words, in shuffled order."""
    text = ""
    if args.rest:
        with open(args.rest.pop(0), errors="replace") as f:
            text = f.read()
    else:
        for base, _, files in sorted(os.walk("/usr/share/perl")) + sorted(
                os.walk("/usr/lib/python3")) + sorted(os.walk("/usr/share/doc")):
            for name in sorted(files):
                if len(text) < 30_000_000 and name.endswith((".pod", ".txt", ".py", "copyright")):
                    with open(os.path.join(base, name), errors="replace") as f:
                        text += f.read()
    words = re.findall(r"[a-z]+", text.lower())
    ids, trace = {}, []
    for pair in zip(words, words[1:]):
        trace.append(ids.setdefault(pair, len(ids)))
    random.Random(1).shuffle(trace)
    return trace[:3_000_000]


def misses(args):
    rng = random.Random(1)
    traces = [("Zipf 1.05", zipf(200_000, 1.05, 900_000, rng), 300),
              ("word pairs", word_pairs(args), 1000)]
    for name, trace, batch in traces:
        path = os.path.join(args.folder, "trace.txt")
        with open(path, "w") as f:
            f.write("\n".join(map(str, trace)) + "\n")
        distinct = len(set(trace))
        rows = 200_000 if name.startswith("Zipf") else distinct
        slots, got = int(0.015 * rows), {}
        for policy in ("future", "static", "lru"):
            r = run(args, "bench", "embedding", path, "--cache", slots, "--policy", policy,
                    "--batch", batch, "--lookahead", 256)
            got[policy] = r["misses"] / r["batches"]
        print("misses a step, %s: %d ids, %d of %d rows cached, batches of %d: ours %.1f, "
              "static %.1f (%.3fx), LRU %.1f (%.3fx)"
              % (name, len(trace), slots, rows, batch, got["future"], got["static"],
                 got["future"] / got["static"], got["lru"], got["future"] / got["lru"]))


# ---- steps ----

RECIPE = """[model]
name = dlrm
width = %(width)d
bottom = none
top = 64
[data]
format = csv
dense = none
validation = 0.01
[train]
batch = %(batch)d
steps = %(steps)d
shards = 4
order = %(order)s
[optimizer]
name = sgd
momentum = 0
lr = 0.01
[schedule]
name = constant
[embedding]
optimizer = sgd
lr = 0.01
[run]
checkpoint_every = 1000000
"""


def recipe(args, **values):
    with open(os.path.join(args.folder, "r.ini"), "w") as f:
        f.write(RECIPE % values)


def data(args, samples, fields, exponent):
    path = os.path.join(args.folder, "c.csv")
    run_words = [args.stint, "data", "clicks", "--out", path, "--rows", str(samples), "--fields",
                 ",".join(map(str, fields)), "--zipf", str(exponent), "--seed", "1", "-q"]
    subprocess.run(run_words, check=True, stdout=subprocess.DEVNULL, env=args.env)
    return run(args, "data", "rank", path, "--out", "c.ranks")["rows"]


def torch_bench(args, limit, *words):
    done = subprocess.run(inside(limit, [args.torch, os.path.join(HERE, "embed_pytorch.py"),
                                         *map(str, words)]), capture_output=True, text=True)
    if done.returncode:
        print("  PyTorch: %s" % (done.stderr.strip().splitlines() or ["was killed"])[-1])
        return None
    return json.loads(done.stdout)


def ram(args):
    fields, batch, steps = [160_000] * 26, 2048, 60
    rows = data(args, 320_000, fields, 0.2)
    recipe(args, width=64, batch=batch, steps=steps, order="shuffle")
    print("ram: %d rows of 64 in 26 fields, batches of %d, SGD" % (rows, batch))
    for _ in range(args.pairs):
        ours = run(args, "train", "r.ini", "--data", "c.ranks", "--out", "ram", "--force")
        line = "  ours %.1f ms a step" % (1e3 * batch / ours["examples_per_s"])
        if args.torch:
            peer = torch_bench(args, None, "ram", rows, 64, 26, batch, steps)
            if peer:
                line += ", PyTorch %s EmbeddingBag %.1f ms: %.2fx" % (
                    peer["version"], 1e3 * peer["step_s"],
                    peer["step_s"] * ours["examples_per_s"] / batch)
        print(line, flush=True)


def cached(args):
    fields, batch, steps = [80_000] * 26, 64, 500
    rows = data(args, 100_000, fields, 1.05)
    recipe(args, width=64, batch=batch, steps=steps, order="shuffle")
    disk = run(args, "bench", "embedding", "--folder", args.folder)
    rate = disk["reads"][-1]["per_s"]
    print("cached: %d rows of 64, batches of %d, %.0f reads of a page a second (O_DIRECT %s)"
          % (rows, batch, rate, disk["direct"]))
    for _ in range(args.pairs):
        whole = run(args, "train", "r.ini", "--data", "c.ranks", "--out", "whole", "--force")
        part = run(args, "train", "r.ini", "--data", "c.ranks", "--out", "part", "--force",
                   "--set", "embedding.cache=%d" % int(0.015 * rows * 360))
        step, own = batch / part["examples_per_s"], batch / whole["examples_per_s"]
        pages = (part["pages_read"] + part["pages_written"]) / steps / rate
        print("  %d of %d rows (%.1f %%), %.0f missing a step: %.1f ms; all in memory %.1f ms, "
              "pages by the disk's rate %.1f ms: %.2fx the larger; %d %% of evictions dirty; %s"
              % (part["cache_rows"], rows, 100 * part["cache_rows"] / rows,
                 part["rows_missed"] / steps, 1e3 * step, 1e3 * own, 1e3 * pages,
                 step / max(own, pages),
                 100 * part["rows_evicted_dirty"] / max(part["rows_evicted"], 1),
                 "same bits" if part["weights_sha256"] == whole["weights_sha256"]
                 else "OTHER BITS"), flush=True)


# ---- under a limit ----

def inside(limit, command):
    """The command in a control group of its own, below ours, of this limit."""
    if not limit:
        return command
    return ["bash", "-c", 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"', "-", limit, *command]


def make_group(bytes_most):
    """A folder of a control group with this limit; None: they cannot be made here."""
    for line in open("/proc/self/cgroup"):
        _, kind, path = line.strip().split(":", 2)
        base = "/sys/fs/cgroup/memory" if kind == "memory" else "/sys/fs/cgroup"
        name = "memory.limit_in_bytes" if kind == "memory" else "memory.max"
        group = base + path.rstrip("/") + "/stint-embed-%d" % os.getpid()
        if kind not in ("memory", "") or not os.path.isdir(os.path.dirname(group)):
            continue
        try:
            os.mkdir(group)
            with open(os.path.join(group, name), "w") as f:
                f.write(str(bytes_most))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return None


def mapped(args):
    limit_bytes, width, batch, steps = args.limit << 20, 128, 64, 300
    rows = 20 * limit_bytes // (4 * width) + 1
    samples, fields = 200_000, [rows // 26 + 1] * 26
    seen = data(args, samples, fields, 1.05)
    # Rows that no sample has cost ours nothing: the table is as large as the peer's.
    recipe(args, width=width, batch=batch, steps=steps, order="shuffle")
    budget = args.limit << 20
    plan = run(args, "plan", "r.ini", "--data", "c.ranks")
    ours_budget = min(budget, seen * 4 * width // 20)  # a twentieth even of what is touched
    smallest = plan["smallest_bytes"]
    print("mapped: %d rows of %d that batches have, %s; a budget of %s is a %dth of them"
          % (seen, width, size(seen * 4 * width), size(max(ours_budget, smallest)),
             seen * 4 * width // max(ours_budget, smallest)))
    group = make_group(args.limit << 20)
    print("  control group: %s" % (("%d MiB" % args.limit) if group else
                                   "cannot be made; the peer has all memory"))
    try:
        for _ in range(args.pairs):
            ours = run(args, "train", "r.ini", "--data", "c.ranks", "--out", "mapped", "--force",
                       "--memory", max(ours_budget, smallest), limit=group)
            line = "  ours %.0f examples/s, peak %s, %d %% of rows missing, read %s" % (
                ours["examples_per_s"], size(ours["peak_rss_bytes"]),
                100 * ours["rows_missed"] / ours["rows_touched"],
                size(ours["pages_read"] * ours["page_bytes"]))
            if args.torch:
                peer = torch_bench(args, group, "mapped", os.path.join(args.folder, "c.ranks"),
                                   width, batch, steps, os.path.join(args.folder, "table.bin"),
                                   rows)
                if peer:
                    line += "; PyTorch %s, %s mapped: %.0f examples/s: %.2fx" % (
                        peer["version"], size(rows * 4 * width), peer["examples_per_s"],
                        ours["examples_per_s"] / peer["examples_per_s"])
            print(line, flush=True)
    finally:
        if group:
            time.sleep(0.5)
            os.rmdir(group)


def size(n):
    return "%.1f MiB" % (n / 2**20)


PARTS = {"hits": hits, "misses": misses, "ram": ram, "cached": cached, "mapped": mapped}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stint", default=os.path.join(HERE, "../build/release/stint"))
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--limit", type=int, default=400, help="of mapped, in MiB")
    parser.add_argument("rest", nargs="*", metavar="PART")
    args = parser.parse_args()
    args.stint = os.path.abspath(args.stint)
    args.rest = args.rest or ["misses", "ram", "cached", "mapped"]
    args.folder = tempfile.mkdtemp(prefix="stint-embed-")
    args.env = dict(os.environ, XDG_CACHE_HOME=args.folder)
    try:
        while args.rest:
            PARTS[args.rest.pop(0)](args)
    finally:
        shutil.rmtree(args.folder, ignore_errors=True)


main()
