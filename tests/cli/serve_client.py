"""Asks a server: answers beside NumPy, bad requests, overload. serve_client.py WHAT ADDRESS MODEL"""
import http.client
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time
import zlib

import numpy as np

WHAT, ADDRESS, MODEL = sys.argv[1:4]
SERVER = int(sys.argv[4]) if len(sys.argv) > 4 else 0
PATH = "/v2/models/m/infer"


def connect():
    if ADDRESS.startswith("unix:"):
        c = http.client.HTTPConnection("localhost")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(ADDRESS[5:])
        return c
    return http.client.HTTPConnection(ADDRESS, timeout=60)


def ask(c, method, path, body=None, headers={}):
    c.request(method, path, body, headers)
    r = c.getresponse()
    return r.status, dict(r.getheaders()), r.read()


def tensors(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(raw[8 + n + a:8 + n + b], "<f4").reshape(t["shape"])
    return out, head["__metadata__"]


def request(images, **more):
    b, h, w, c = images.shape
    return {"inputs": [{"name": "image", "datatype": "UINT8", "shape": [b, h, w, c],
                        "data": images.tolist()}], **more}


def images(seed, b):
    return np.random.default_rng(seed).integers(0, 256, (b, 8, 8, 1), np.uint8)


def binary(x, kind="UINT8"):
    head = json.dumps({"inputs": [{"name": "image", "datatype": kind, "shape": list(x.shape),
                                   "parameters": {"binary_data_size": x.nbytes}}],
                       "outputs": [{"name": "logits"}, {"name": "class"}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


def logits_of(c, x, kind="UINT8"):
    body, headers = binary(x, kind)
    status, answer, data = ask(c, "POST", PATH, body, headers)
    assert status == 200, (status, data)
    n = int(answer["Inference-Header-Content-Length"])
    head = json.loads(data[:n])
    assert [o["name"] for o in head["outputs"]] == ["class", "logits"]
    b = len(x)
    classes = np.frombuffer(data[n:n + 8 * b], "<i8")
    logits = np.frombuffer(data[n + 8 * b:], "<f4").reshape(b, -1)
    assert (logits.argmax(1) == classes).all()
    return logits


def answers():
    weights, meta = tensors(MODEL)
    mean, deviation = float(meta["mean"]), float(meta["deviation"])
    c = connect()
    x = images(1, 5)
    got = logits_of(c, x)
    assert (logits_of(c, x.astype("<f4"), "FP32") == got).all()
    status, head, data = ask(c, "POST", PATH, json.dumps(request(
        x, id="a", outputs=[{"name": "logits"}, {"name": "probabilities"}])))
    j = json.loads(data)
    assert status == 200 and j["id"] == "a" and "queue;dur=" in head["Server-Timing"], j
    by_name = {o["name"]: np.array(o["data"]) for o in j["outputs"]}
    assert (by_name["logits"].astype("f4").reshape(5, -1) == got).all()
    z = np.exp(got.astype("f8") - got.max(1, keepdims=True))
    assert np.abs(by_name["probabilities"].reshape(5, -1) - z / z.sum(1, keepdims=True)).max() < 1e-6
    # Three layers by NumPy, from the file.
    y = (x.reshape(5, -1) / 255.0 - mean) / deviation
    for name in ("hidden0", "hidden1", "fc"):
        y = y @ weights[name + ".weight"].astype("f8") + weights[name + ".bias"]
        y = y if name == "fc" else np.maximum(y, 0)
    assert np.abs(y - got).max() < 1e-4, np.abs(y - got).max()


def crowd():
    """Many clients, random batches: each image has the bits that it has alone."""
    c = connect()
    alone = {s: logits_of(c, images(s, 1))[0] for s in range(40)}
    wrong = []

    def client(number):
        r, k = random.Random(number), connect()
        for _ in range(40):
            seeds = [r.randrange(40) for _ in range(r.randint(1, 9))]
            got = logits_of(k, np.concatenate([images(s, 1) for s in seeds]))
            if any((got[i] != alone[s]).any() for i, s in enumerate(seeds)):
                wrong.append(seeds)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong, wrong[:3]


def bad():
    c = connect()
    x = images(1, 1)
    good = request(x)

    def refused(status, words, body, headers={}, path=PATH, method="POST"):
        got, _, data = ask(c, method, path, body, headers)
        text = json.loads(data)["error"]
        assert got == status and words in text, (got, text, words)

    def changed(**keys):
        r = json.loads(json.dumps(good))
        r["inputs"][0].update(keys)
        return json.dumps(r)

    refused(400, "JSON", "{")
    refused(400, "JSON", "[1]")
    refused(400, "nested", "[" * 100000)
    refused(400, "nested", '{"inputs":' + '{"a":' * 50 + "1" + "}" * 51)
    refused(400, "inputs", "{}")
    refused(400, "datatype", changed(datatype="INT8"))
    refused(400, "[batch, 8, 8, 1]", changed(shape=[1, 8, 8]))
    refused(400, "[batch, 8, 8, 1]", changed(shape=[1, 16, 16, 1]))
    refused(400, "64", changed(data=[1] * 63))
    refused(400, "UINT8", changed(data=[1] * 63 + [256]))
    refused(400, "UINT8", changed(data=[1] * 63 + [1.5]))
    refused(400, "number", changed().replace("[[[[", "[[[[NaN,", 1))
    refused(400, "batch of 0", changed(shape=[0, 8, 8, 1], data=[]))
    refused(400, "more than 1024", json.dumps(request(images(1, 17))))
    refused(400, "batch of 17", *binary(images(1, 17)))
    refused(400, "timeout", json.dumps(request(x, parameters={"timeout": 0})))
    refused(400, "outputs", json.dumps(request(x, outputs=[{"name": "features"}])))
    refused(400, "binary_data_size", changed(parameters={"binary_data_size": 64}))
    body, headers = binary(x)
    refused(400, "Header-Content-Length", body, {"Inference-Header-Content-Length": "x"})
    refused(400, "Header-Content-Length", body, {"Inference-Header-Content-Length": str(len(body) + 1)})
    refused(400, "belong to no input", body + b"more", headers)
    refused(422, "image", b"no image", {"Content-Type": "image/png"})
    refused(413, "too large", b"x" * (3 << 20))
    refused(404, "model", "{}", path="/v2/models/other/infer")
    refused(404, "path", None, path="/nothing", method="GET")
    refused(404, "infer", "{}", path="/v2/models/m/fly")
    refused(429, "too late", json.dumps(request(x, parameters={"timeout": 1})))
    # A client that leaves in the middle, and one that never finishes, are no one's trouble.
    for piece in (b"POST " + PATH.encode() + b" HTTP/1.1\r\nContent-Length: 100\r\n\r\n{", b"GET /"):
        s = connect()
        s.connect() if s.sock is None else None
        s.sock.sendall(piece)
        s.sock.close()
    assert ask(connect(), "GET", "/v2/health/ready")[0] == 200
    assert logits_of(connect(), x).shape == (1, 36)


def png(side):
    """A grey square, all black: a small file of many pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0" * ((side + 1) * side))) + chunk(b"IEND", b""))


def memory():
    """Small requests that would take much memory, and many large ones at once."""
    c = connect()
    status, _, data = ask(c, "POST", PATH, '{"a":[' + "1," * 400000 + "1]}")
    assert status == 413 and b"JSON beside data" in data, (status, data)
    status, _, data = ask(c, "POST", PATH, png(10000), {"Content-Type": "image/png"})
    assert status == 413 and b"to decode" in data, (status, data)
    assert ask(c, "POST", PATH, png(40), {"Content-Type": "image/png"})[0] == 200
    body = b"x" * (1 << 20)
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(body))
    many = []
    for _ in range(150):
        k = connect()
        k.connect()
        k.sock.sendall(head + body[:-1])
        many.append(k.sock)
    statuses = []
    for s in many:
        s.sendall(b"x")
        statuses.append(int(s.recv(1 << 16).split()[1]))
        s.close()
    assert set(statuses) <= {413, 503} and 503 in statuses, statuses
    assert logits_of(connect(), images(1, 1)).shape == (1, 36)


def large():
    """Bodies and answers that are read and written beside the connections' thread: the bits of small ones."""
    c = connect()
    x = images(7, 128)
    wanted = np.concatenate([logits_of(c, x[i:i + 4]) for i in range(0, 128, 4)])
    numbers = ",".join(f"{v}.{'0' * 20}" for v in x.reshape(-1).tolist())
    body = ('{"inputs":[{"name":"image","datatype":"FP32","shape":[128,8,8,1],"data":[' + numbers
            + ']}],"outputs":[{"name":"logits"},{"name":"probabilities"}]}')
    status, head, data = ask(c, "POST", PATH, body)
    j = json.loads(data)
    assert status == 200 and "compute;dur=" in head["Server-Timing"], data[:200]
    by_name = {o["name"]: np.array(o["data"]) for o in j["outputs"]}
    assert (by_name["logits"].astype("f4").reshape(128, -1) == wanted).all()
    assert len(body) > 1 << 17 and len(data) > 1 << 16
    for changed, want in ((body[:-1], 400), (body.replace("FP32", "UINT8", 1)[:-100000] + "]}]}", 400)):
        status, _, data = ask(c, "POST", PATH, changed)
        assert status == want and json.loads(data)["error"], (status, data)
    # With less time than there is: refused after reading, as a small one is.
    status, _, data = ask(c, "POST", PATH, body[:-1] + ',"parameters":{"timeout":1}}')
    assert status == 429, (status, data)


def limit():
    """More connections than may be: each is told so, none is broken off."""
    kept = [connect() for _ in range(8)]
    for c in kept:
        assert ask(c, "GET", "/v2/health/live")[0] == 200
    body, headers = binary(images(1, 1))
    for i in range(40):
        c = connect()
        status, head, data = ask(c, "POST", PATH, body, headers) if i % 2 else ask(c, "GET", "/v2/health/ready")
        assert status == 503 and b"too many connections" in data, (i, status, data)
        assert head["Connection"] == "close" and int(head["Retry-After"]) > 0, head
        c.close()
    for c in kept:
        assert logits_of(c, images(1, 1)).shape == (1, 36)
        c.close()
    for _ in range(100):
        status = ask(connect(), "POST", PATH, body, headers)[0]
        if status == 200:
            return
        time.sleep(0.02)
    raise AssertionError("no place although connections were closed")


def drain():
    """Clients that go on asking while the server ends; how many were answered."""
    answered = []

    def client():
        body, headers = binary(images(1, 4))
        c = connect()
        while True:
            try:
                status = ask(c, "POST", PATH, body, headers)[0]
            except (OSError, http.client.HTTPException):
                return
            answered.append(status)
            if status == 503:
                return

    threads = [threading.Thread(target=client) for _ in range(24)]
    [t.start() for t in threads]
    time.sleep(0.3)
    os.kill(SERVER, signal.SIGTERM)
    [t.join() for t in threads]
    assert set(answered) <= {200, 429, 503}, set(answered)
    print(answered.count(200))


def cut_off():
    """Requests that wait when the time to drain is over: each is told so."""
    many = [connect() for _ in range(3)]
    body, headers = binary(images(1, 1))
    for c in many:
        c.request("POST", PATH, body, headers)
    time.sleep(0.2)
    os.kill(SERVER, signal.SIGTERM)
    for c in many:
        r = c.getresponse()
        text = json.loads(r.read())["error"]
        assert r.status == 503 and "ended" in text, (r.status, text)


def protocol():
    c = connect()
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models", "/v2/models/m",
                 "/v2/models/m/ready"):
        status, _, data = ask(c, "GET", path)
        assert status == 200 and isinstance(json.loads(data), dict), path
    meta = json.loads(ask(c, "GET", "/v2/models/m")[2])
    assert meta["inputs"][0] == {"name": "image", "datatype": "UINT8", "shape": [-1, 8, 8, 1]}
    version = meta["versions"][0]
    assert ask(c, "GET", "/v2/models/m/versions/" + version + "/ready")[0] == 200
    assert ask(c, "GET", "/v2/models/m/versions/000000000000")[0] == 404
    page = ask(c, "GET", "/")[2].decode()
    assert "Partitions" in page and "<script" not in page
    text = ask(c, "GET", "/metrics")[2].decode()
    assert 'stint_requests_total{model="m",result="served"}' in text
    for line in text.splitlines():
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])


globals()[WHAT]()
