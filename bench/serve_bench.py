#!/usr/bin/env python3
"""Answers in time a second: stint serve beside mosec and litserve with ONNX Runtime, same network and weights, same client.

    bench/serve_bench.py STINT CLIENT [--peers PYTHON] [--rates 200,500,..] [--seconds S] [--sla MS] [--rounds N]

LeNet-5 on images of 28 x 28, one a request, open loop (bench/http_load_bench.c is CLIENT). Trained and exported here.
PYTHON has mosec, litserve and onnxruntime (python3 -m venv v; v/bin/pip install mosec litserve onnxruntime); its
servers have a worker with one thread of ONNX Runtime a CPU, and merge up to 32 requests within 2 ms. In turns: at each
rate every server in order. The defaults take about 4 minutes."""
import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from serve_peers import free_port, request, write_server

INI = "[model]\nname = lenet5\n[train]\nepochs = 1\nbatch = 48\n"


def cpu_seconds(group):
    """Of all processes of a group, those that ended and were waited for among them."""
    ticks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[2]) == group:
                ticks += sum(int(f) for f in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def write_requests():
    image = bytes(i % 251 for i in range(784))
    head = json.dumps({"inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, 28, 28, 1],
                                   "parameters": {"binary_data_size": 784}}],
                       "parameters": {"binary_data_output": True}}).encode()
    open("stint.req", "wb").write(request("/v2/models/m/infer", head + image,
                                          f"Inference-Header-Content-Length: {len(head)}\r\n"))
    open("mosec.req", "wb").write(request("/inference", image, "Content-Type: application/octet-stream\r\n"))
    body = json.dumps({"image": base64.b64encode(image).decode()}).encode()
    open("litserve.req", "wb").write(request("/predict", body, "Content-Type: application/json\r\n"))


def start(name, a):
    port = free_port()
    if name == "stint":
        command = [a.stint, "serve", "m", "--sla", f"{a.sla}ms", "--listen", f"127.0.0.1:{port}"]
    else:
        command = [a.peers] + [word.replace("PORT", str(port)) for word in write_server(name, "m.onnx", 28, 32)]
    log = open(name + ".log", "w")
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    for _ in range(600):
        time.sleep(0.1)
        if server.poll() is not None:
            sys.exit(f"{name} did not begin: " + open(name + ".log").read()[-2000:])
        out = load(name, port, 20, 0.5, 1000, a)
        if out and out["served"] > 0:
            return server, port
    sys.exit(f"{name} answers nothing: " + open(name + ".log").read()[-2000:])


def load(name, port, rate, seconds, sla, a):
    out = subprocess.run([a.client, "127.0.0.1", str(port), name + ".req", str(rate), str(seconds), str(sla)],
                         capture_output=True, text=True)
    return json.loads(out.stdout.replace("nan", "null")) if out.returncode == 0 else None


def compare(names, servers, a):
    best, least = dict.fromkeys(names, 0.0), dict.fromkeys(names, float("inf"))
    print(f"in time: answered within {a.sla:g} ms of the time that was due; {a.seconds:g} s each")
    print(f"{'offered':>9} {'server':>9} {'in time':>11} {'share':>7} {'p50':>10} {'p95':>10} {'p99':>10} "
          f"{'refused':>8} {'failed':>7} {'CPU':>10}")
    for rate in (float(r) for r in a.rates.split(",")):
        for _ in range(a.rounds):
            for name in names:
                before = cpu_seconds(servers[name][0].pid)
                j = load(name, servers[name][1], rate, a.seconds, a.sla, a)
                cpu = 1e6 * (cpu_seconds(servers[name][0].pid) - before) / max(j["in_time"], 1)
                least[name] = min(least[name], cpu if j["in_time"] > 0.95 * j["sent"] else least[name])
                share = j["in_time"] / max(j["sent"], 1)
                best[name] = max(best[name], rate if share >= 0.95 else 0)
                ms = [f"{v:7.2f} ms" if v is not None else f"{'-':>10}" for v in (j["p50_ms"], j["p95_ms"], j["p99_ms"])]
                print(f"{rate:7.0f}/s {name:>9} {j['good_per_s']:9.1f}/s {100 * share:5.1f} % {' '.join(ms)} "
                      f"{j['other']:8d} {j['failed']:7d} {cpu:7.0f} us", flush=True)
                time.sleep(0.5)
    print("highest rate with 95 of 100 in time: " + ", ".join(f"{n} {best[n]:g}/s" for n in names))
    print("least CPU time of the server an answer there: " + ", ".join(f"{n} {least[n]:.0f} us" for n in names))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("client")
    p.add_argument("--peers")
    p.add_argument("--rates", default="200,500,1000,2000,4000,8000")
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--sla", type=float, default=20)
    p.add_argument("--rounds", type=int, default=2)
    a = p.parse_args()
    a.stint, a.client = os.path.abspath(a.stint), os.path.abspath(a.client)
    a.peers = a.peers and os.path.abspath(a.peers)
    names = ["stint"] + (["mosec", "litserve"] if a.peers else [])
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        open("a.ini", "w").write(INI)
        for command in (["data", "glyphs", "--out", "g", "--train", "96", "--test", "36", "--size", "28"],
                        ["train", "a.ini", "--data", "g", "--out", "m"],
                        ["export", "onnx", "m", "--out", "m.onnx"]):
            subprocess.run([a.stint, *command, "-q"], check=True, capture_output=True)
        write_requests()
        servers = {}
        try:
            for name in names:
                servers[name] = start(name, a)
            compare(names, servers, a)
        finally:
            for server, _ in servers.values():
                os.killpg(server.pid, signal.SIGTERM)
                try:
                    server.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(server.pid, signal.SIGKILL)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers end, too
main()
