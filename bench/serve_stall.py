#!/usr/bin/env python3
"""Latencies of small requests while large JSON bodies come in, beside those of small ones alone, in turns.

    bench/serve_stall.py STINT [--other STINT] [--rounds N] [--seconds S]

A model of 28 x 28 images is trained here. Small: one image as binary data, 200 a second, open loop. Large: 8 MB
of JSON numbers, 256 images, on two connections, one after another. With --other a second program serves in turns.
It takes some seconds a round."""
import argparse
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time

INI = "[model]\nname = mlp\nwidth = 64\n[train]\nepochs = 1\nbatch = 36\n"
PATH = "/v2/models/m/infer"


def start(stint):
    if os.path.exists("address"):
        os.remove("address")
    server = subprocess.Popen([stint, "serve", "m", "--sla", "5s", "--batch-max", "256", "--listen", "127.0.0.1:0",
                               "--address-file", "address"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists("address"):
        if server.poll() is not None:
            sys.exit("stint serve did not begin")
        time.sleep(0.02)
    return server, open("address").read().strip()


def large(address):
    """8 MB of numbers that are read one by one."""
    number = "100." + "0" * 35
    body = ('{"inputs":[{"name":"image","datatype":"FP32","shape":[256,28,28,1],"data":['
            + ",".join([number] * (256 * 784)) + "]}]}").encode()
    while True:
        c = http.client.HTTPConnection(address, timeout=60)
        c.request("POST", PATH, body)
        r = c.getresponse()
        assert r.status == 200, r.read()
        r.read()


def small(address, seconds):
    """Latencies from the times that were due, in milliseconds."""
    head = json.dumps({"inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, 28, 28, 1],
                                   "parameters": {"binary_data_size": 784}}]}).encode()
    c = http.client.HTTPConnection(address, timeout=60)
    out, begin = [], time.monotonic()
    for i in range(int(200 * seconds)):
        due = begin + i / 200
        time.sleep(max(0, due - time.monotonic()))
        c.request("POST", PATH, head + bytes(784), {"Inference-Header-Content-Length": str(len(head))})
        r = c.getresponse()
        r.read()
        assert r.status == 200, r.status
        out.append(1e3 * (time.monotonic() - due))
    return sorted(out)


def measure(stint, seconds):
    server, address = start(stint)
    rows = []
    for with_large in (False, True):
        # In processes of their own, for threads of Python hinder each other.
        others = [multiprocessing.Process(target=large, args=(address,)) for _ in range(2 * with_large)]
        for o in others:
            o.start()
        time.sleep(0.3)
        rows.append(small(address, seconds))
        for o in others:
            o.kill()
            o.join()
    server.terminate()
    server.wait()
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("--other")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=4)
    a = p.parse_args()
    programs = [os.path.abspath(s) for s in (a.stint, a.other) if s]
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        open("a.ini", "w").write(INI)
        for command in (["data", "glyphs", "--out", "g", "--train", "72", "--test", "36", "--size", "28"],
                        ["train", "a.ini", "--data", "g", "--out", "m"]):
            subprocess.run([programs[0], *command, "-q"], check=True, capture_output=True)
        print(f"{'program':>24} {'large bodies':>12} {'p50':>9} {'p95':>9} {'p99':>9} {'longest':>9}")
        for _ in range(a.rounds):
            for stint in programs:
                for name, x in zip(("none", "two at once"), measure(stint, a.seconds)):
                    q = [x[int(f * (len(x) - 1))] for f in (0.5, 0.95, 0.99, 1)]
                    print(f"{stint[-24:]:>24} {name:>12} " + " ".join(f"{v:6.2f} ms" for v in q), flush=True)


main()
