#!/usr/bin/env python3
"""Does the server's memory grow? Images and texts, in batches of many sizes, bad requests and
clients that leave among them; resident bytes after the first 10,000 requests and at the end.

    bench/serve_soak.py STINT [--requests N] [--rate R]

Models are small and trained here. Fails where resident memory grew by 1 MiB or more, where a good request failed,
and where the server's counts are not those of what was sent, the bad requests and those left among them."""
import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

TEXT = "a cat sat on the mat and the dog saw it. " * 200
INI = {"a": "[model]\nname = mlp\nwidth = 32\n[train]\nepochs = 1\nbatch = 36\n",
       "t": "[model]\nname = gpt\ndepth = 1\nwidth = 32\nheads = 2\ncontext = 64\n[data]\npath = text.txt\n"
            "tokenizer = char\n[train]\nsteps = 20\nbatch = 4\n"}


def resident(address):
    c = http.client.HTTPConnection(address, timeout=60)
    c.request("GET", "/metrics")
    for line in c.getresponse().read().decode().splitlines():
        if line.startswith("stint_resident_bytes "):
            return int(line.split()[1])
    sys.exit("no stint_resident_bytes")


def nuisances(address, stop, handed):
    """Bodies that are no JSON, clients that leave in the middle of a text or of a body. How many were whole."""
    host, port = address.split(":")
    long = json.dumps({"text_input": "a cat", "parameters": {"max_tokens": 5000}})
    i = 0
    while not stop.wait(0.05):
        i += 1
        path, body = [("t/generate_stream", long), ("t/generate", "{"), ("m/infer", "[" * 5000)][i % 3]
        with socket.create_connection((host, int(port))) as s:
            whole = i % 5 != 0
            handed[0] += whole
            s.sendall(f"POST /v2/models/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
                      .encode() + body.encode()[:len(body) - (not whole)])
            s.settimeout(1)
            try:
                s.recv(1000)
            except TimeoutError:
                pass


def load(stint, address, model, requests, rate, *more):
    out = subprocess.run([stint, "bench", "serve", "--url", "http://" + address, "--model", model, "--requests",
                          str(requests), "--arrivals", f"poisson:{rate}", "--json", *more], capture_output=True)
    if out.returncode:
        sys.exit(out.stderr.decode())
    return json.loads(out.stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("--requests", type=int, default=1000000)
    p.add_argument("--rate", type=float, default=2000)
    a = p.parse_args()
    stint = os.path.abspath(a.stint)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        open("text.txt", "w").write(TEXT)
        open("prompts.txt", "w").write("a cat\nthe dog saw\nit\n")
        for name, text in INI.items():
            open(name + ".ini", "w").write(text)
        for command in (["data", "glyphs", "--out", "g", "--train", "72", "--test", "36", "--size", "8"],
                        ["train", "a.ini", "--data", "g", "--out", "m"], ["train", "t.ini", "--out", "t"]):
            subprocess.run([stint, *command, "-q"], check=True, capture_output=True)
        server = subprocess.Popen([stint, "serve", "m", "t", "--sla", "10s", "--max-connections", "4096",
                                   "--listen", "127.0.0.1:0",
                                   "--address-file", "address", "--json"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        while not os.path.exists("address"):
            if server.poll() is not None:
                sys.exit("stint serve did not begin")
        address = open("address").read().strip()
        stop = threading.Event()
        handed = [0]
        other = threading.Thread(target=nuisances, args=(address, stop, handed))
        other.start()
        sent, begin, failed = 0, None, 0
        while sent < a.requests:
            part = 10000 if begin is None else min(100000, a.requests - sent)
            texts = part // 10
            counts = [load(stint, address, "m", part - texts, a.rate, "--batch", "lognormal:1,0.9"),
                      load(stint, address, "t", texts, a.rate / 10, "--data", "prompts.txt", "--batch", "10")]
            sent += sum(c["sent"] for c in counts)
            failed += sum(c["failed"] for c in counts)
            now = resident(address)
            begin = begin or now
            print(f"{sent:9d} requests: {now / 2**20:.2f} MiB resident, {(now - begin) / 2**10:+.0f} KiB; "
                  f"failed {sum(c['failed'] for c in counts)}", flush=True)
        stop.set()
        other.join()
        server.terminate()
        told = json.loads(server.communicate()[0])
        all_told = sum(told[k] for k in ("served", "rejected", "late", "failed"))
        print(f"{sent} good requests, {failed} of them failed; {handed[0]} bad ones or left; the server: {told}")
        if all_told != sent + handed[0]:
            print(f"{all_told} were told, {sent + handed[0]} sent")
    sys.exit(now - begin >= 1 << 20 or failed > 0 or all_told != sent + handed[0])


main()
