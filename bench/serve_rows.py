#!/usr/bin/env python3
"""Four questions to `stint serve`, each with its answer in figures, by one open-loop client (bench/http_load_bench.c).

    bench/serve_rows.py STINT CLIENT [--peers PYTHON] [--only resnet,pair,overload,neighbour] [--seconds S] [--overload S]

resnet     ResNet-18 on images of 32 x 32 in queries of 1 to 32 (logarithmic normal, mean of the logarithm ln 4, deviation
           0.9): the highest rate with 95 of 100 in time, beside mosec and litserve with ONNX Runtime, each with the best
           of a worker a CPU and one for all, no merging and 8 queries within 2 ms. The deadline is 1.5 times what 32
           images take on one CPU.
pair       LeNet-5 within 10 ms and that ResNet-18 within 200 ms (queries of 1 to 8), one server: the highest rate of
           both together with 95 of 100 of each in time, beside --policy fifs with each batch and delay that is tried.
overload   ResNet-18, single images, three times the bound for --overload seconds: late among the answers of 200, and
           those in time a second beside the best rate; with --peers the latencies of theirs.
neighbour  two partitions of a CPU: the time of a batch of ResNet-18 on one (Server-Timing), the other idle or busy.
PYTHON has mosec, litserve and onnxruntime. Each takes some minutes; nothing else should run."""
import argparse
import concurrent.futures
import http.client
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from serve_peers import free_port, request, write_server

SIDE = 32


def infer_body(images, side):
    data = random.Random(images).randbytes(images * side * side)
    head = json.dumps({"inputs": [{"name": "image", "datatype": "UINT8", "shape": [images, side, side, 1],
                                   "parameters": {"binary_data_size": len(data)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + data, f"Inference-Header-Content-Length: {len(head)}\r\n", data


def write_requests(model, side, sizes):
    """A file for each server and size; the list of those to be sent, as often as their sizes come."""
    import base64
    for b in set(sizes):
        body, headers, data = infer_body(b, side)
        open(f"stint.{model}.{b}", "wb").write(request(f"/v2/models/{model}/infer", body, headers))
        open(f"mosec.{model}.{b}", "wb").write(request("/inference", data, "Content-Type: application/octet-stream\r\n"))
        text = json.dumps({"image": base64.b64encode(data).decode()}).encode()
        open(f"litserve.{model}.{b}", "wb").write(request("/predict", text, "Content-Type: application/json\r\n"))
    return sizes


def spread(most, sigma=0.9, count=200):
    """The sizes of `count` queries: evenly spaced quantiles of the rounded distribution, cut at `most`."""
    normal = statistics.NormalDist(math.log(4), sigma)
    return [min(most, max(1, round(math.exp(normal.inv_cdf((i + 0.5) / count))))) for i in range(count)]


def files(server, model, sizes):
    return ",".join(f"{server}.{model}.{b}" for b in sizes)


class Server:
    def __init__(self, a, command, probe):
        self.a = a
        self.port = free_port()
        self.log = open("server.log", "w")
        self.process = subprocess.Popen([c.replace("PORT", str(self.port)) for c in command], stdout=self.log,
                                        stderr=self.log, start_new_session=True)
        for _ in range(1200):
            time.sleep(0.1)
            if self.process.poll() is not None:
                break
            out = self.load(probe, 10, 0.5, 1e5)
            if out and out["served"] > 0:
                return
        self.end()
        sys.exit("no answer: " + open("server.log").read()[-2000:])

    def load(self, requests, rate, seconds, sla_ms):
        out = subprocess.run([self.a.client, "127.0.0.1", str(self.port), requests, str(rate), str(seconds), str(sla_ms)],
                             capture_output=True, text=True)
        return json.loads(out.stdout.replace("nan", "null")) if out.returncode == 0 else None

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def stint(a, models, slas, *more):
    sla = ",".join(f"{m}={s:g}ms" for m, s in slas.items())
    command = [a.stint, "serve", *(f"{m}={m}" for m in models), "--sla", sla, "--listen", "127.0.0.1:PORT", *more]
    return Server(a, command, f"stint.{models[-1]}.1")


def peer(a, name, merge, workers=None):
    return Server(a, [a.peers, *write_server(name, "resnet.onnx", SIDE, merge, workers)], f"{name}.resnet.1")


def climb(try_rate, first, label):
    """The highest rate that holds: doubled while it does, then four halvings of what is between (1/24 of it left)."""
    low, high = 0.0, first
    while try_rate(high):
        low, high = high, 2 * high
    for _ in range(4):
        middle = (low + high) / 2
        if try_rate(middle):
            low = middle
        else:
            high = middle
    print(f"{label:44} {low:8.1f}/s", flush=True)
    return low


def highest(server, requests, sla, first, label):
    def holds(rate):
        j = server.load(requests, rate, server.a.seconds, sla)
        return j["in_time"] >= 0.95 * j["sent"]
    return climb(holds, first, label)


def resnet(a):
    sizes = write_requests("resnet", SIDE, spread(32))
    sla = 1.5e3 * a.tables["resnet"]["p50_s"][0][-1]
    first = 0.5 * a.cpus / statistics.mean(a.tables["resnet"]["p50_s"][0][a.tables["resnet"]["batches"].index(1)] * b
                                           for b in sizes)
    print(f"resnet: queries of 1 to 32 images, mean {statistics.mean(sizes):.1f}, deadline {sla:.0f} ms")
    best = {}
    with stint(a, ["resnet"], {"resnet": sla}, "--quantile", "0.95") as s:
        best["stint"] = highest(s, files("stint", "resnet", sizes), sla, first, "  stint serve")
    for name in ["mosec", "litserve"] if a.peers else []:
        for merge, workers in ((1, a.cpus), (8, a.cpus), (1, 1), (8, 1)):
            with peer(a, name, merge, workers) as s:
                label = f"  {name}, {workers} workers, {merge} queries merged"
                rate = highest(s, files(name, "resnet", sizes), sla, first, label)
                best[name] = max(best.get(name, 0), rate)
    if a.peers:
        print(f"  stint over the better of them: {best['stint'] / max(best['mosec'], best['litserve']):.2f} (wanted: 1.2)")


def both(a, server, sizes, rate):
    slas, share = {"lenet": 10, "resnet": 200}, a.pair_share
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        out = list(pool.map(lambda m: server.load(files("stint", m, sizes[m]), rate * share[m], a.seconds, slas[m]), share))
    return [j["in_time"] / j["sent"] for j in out]


def pair(a):
    sizes = {"lenet": write_requests("lenet", 28, [1]), "resnet": write_requests("resnet", SIDE, spread(8))}
    a.pair_share = {"lenet": 0.9, "resnet": 0.1}
    slas = {"lenet": 10, "resnet": 200}
    print("pair: nine queries of LeNet-5 within 10 ms for one of ResNet-18 (1 to 8 images) within 200 ms")
    tries = [("elsa", [])] + [("fifs", ["--batch-max", str(b), "--batch-delay", f"{d}ms", "--cut", c])
                              for c in ("2", "1,1") for b, d in ((8, 0), (8, 2))]
    best = {}
    for policy, more in tries:
        most = [] if "--batch-max" in more else ["--batch-max", "8"]
        with stint(a, list(slas), slas, "--policy", policy, *most, *more) as s:
            label = f"  {policy} {' '.join(more)}"
            rate = climb(lambda r: min(both(a, s, sizes, r)) >= 0.95, 50, label)
            best[policy] = max(best.get(policy, 0), rate)
    print(f"  elsa over the best fifs: {best['elsa'] / best['fifs'] if best['fifs'] else math.inf:.2f} (wanted: 2)")


def overload(a):
    sizes = write_requests("resnet", SIDE, [1])
    sla = 500
    table = a.tables["resnet"]
    bound = a.cpus * max(b / t for b, t in zip(table["batches"], table["p50_s"][0]))
    print(f"overload: single images within {sla} ms, {3 * bound:.0f}/s for {a.overload:g} s (three times {bound:.0f}/s)")
    names = ["stint"] + (["mosec", "litserve"] if a.peers else [])
    for name in names:
        with stint(a, ["resnet"], {"resnet": sla}, "--batch-max", "8") if name == "stint" else peer(a, name, 8) as s:
            requests = files(name, "resnet", sizes)
            rate = highest(s, requests, sla, bound / 2, f"  {name}: highest rate with 95 of 100 in time")
            good = s.load(requests, rate, a.seconds, sla)["good_per_s"]
            j = s.load(requests, 3 * bound, a.overload, sla)
            late = 1 - j["in_time"] / max(j["served"], 1)
            print(f"  {name}: {100 * late:.2f} % of {j['served']} answers late (wanted: 2), {j['good_per_s']:.1f}/s in time, "
                  f"{j['good_per_s'] / max(good, 1e-9):.2f} of its best (wanted: 0.8), p95 {j['p95_ms']} ms, "
                  f"{j['other']} refused, {j['failed']} failed", flush=True)


def compute_ms(port, body, headers):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request("POST", "/v2/models/resnet/infer", body, {"Inference-Header-Content-Length": headers.split(":")[1].strip()})
    answer = c.getresponse()
    answer.read()
    found = re.search(r"compute;dur=([0-9.]+)", answer.getheader("Server-Timing", ""))
    return float(found[1]) if answer.status == 200 and found else None


def neighbour(a):
    """One client asks for batch after batch, alone and with a second one; each keeps one of the two partitions busy."""
    write_requests("resnet", SIDE, [1])
    body, headers, _ = infer_body(8, SIDE)
    print("neighbour: a batch of 8 images of ResNet-18 on one CPU, that of the other idle or busy")
    with stint(a, ["resnet"], {"resnet": 60000}, "--cut", "1,1", "--batch-max", "8") as s:
        def ask(n):
            return [t for t in (compute_ms(s.port, body, headers) for _ in range(n)) if t]
        alone, busy = [], []
        for _ in range(5):
            alone += ask(20)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                busy += [t for part in pool.map(ask, (20, 20)) for t in part]
        one, two = statistics.median(alone), statistics.median(busy)
        print(f"  median {one:.2f} ms alone, {two:.2f} ms beside another: {100 * (two / one - 1):+.1f} % (wanted: 5 at most)")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("client")
    p.add_argument("--peers")
    p.add_argument("--only", default="resnet,pair,overload,neighbour")
    p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--overload", type=float, default=60)
    a = p.parse_args()
    a.stint, a.client, a.peers = (x and os.path.abspath(x) for x in (a.stint, a.client, a.peers))
    a.cpus = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name, network, side in (("lenet", "lenet5", 28), ("resnet", "resnet18", SIDE)):
            open(name + ".ini", "w").write(f"[model]\nname = {network}\n[train]\nepochs = 1\nbatch = 48\n")
            for command in (["data", "glyphs", "--out", "g" + name, "--train", "96", "--test", "36", "--size", str(side)],
                            ["train", name + ".ini", "--data", "g" + name, "--out", name]):
                subprocess.run([a.stint, *command, "-q"], check=True)
        subprocess.run([a.stint, "export", "onnx", "resnet", "--out", "resnet.onnx", "--batch", "dynamic", "-q"], check=True)
        told = subprocess.run([a.stint, "serve", "resnet=resnet", "--sla", "100s", "--explain", "--json"],
                              capture_output=True, text=True, check=True)
        a.tables = {m["name"]: m for m in json.loads(told.stdout)["models"]}
        for row in a.only.split(","):
            globals()[row](a)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end, too
main()
