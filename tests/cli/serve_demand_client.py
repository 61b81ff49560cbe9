"""Asks a server whose models do not fit together. serve_demand_client.py WHAT ADDRESS"""
import http.client
import json
import os
import random
import shutil
import sys
import threading

WHAT, ADDRESS = sys.argv[1:3]
IMAGE = bytes(range(64))
HEAD = json.dumps({"inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, 8, 8, 1],
                               "parameters": {"binary_data_size": 64}}], "outputs": [{"name": "logits"}],
                   "parameters": {"binary_data_output": True}}).encode()


def ask(method, path, body=None, headers={}):
    c = http.client.HTTPConnection(ADDRESS, timeout=60)
    c.request(method, path, body, headers)
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, dict(r.getheaders()), data


def infer(model, head=HEAD):
    status, headers, data = ask("POST", f"/v2/models/{model}/infer", head + IMAGE,
                                {"Inference-Header-Content-Length": str(len(head))})
    if status != 200:
        return status, headers, data
    return status, headers, data[int(headers["Inference-Header-Content-Length"]):]


def text():
    status, headers, data = ask("POST", "/v2/models/t/generate",
                                json.dumps({"text_input": "a cat", "parameters": {"max_tokens": 12, "seed": 5}}))
    return status, headers, json.loads(data).get("text_output", data)


def answer(model):
    status, _, data = text() if model == "t" else infer(model)
    assert status == 200, (model, status, data)
    return data if model == "t" else data.hex()


def loaded():
    out = {}
    for line in ask("GET", "/metrics")[2].decode().splitlines():
        for key in ("stint_model_loaded", "stint_model_loads_total"):
            if line.startswith(key + "{"):
                out.setdefault(key, {})[line.split('"')[1]] = int(line.split()[1])
    return out


def keep():
    json.dump({m: answer(m) for m in "abct"}, open("wanted.json", "w"))
    assert "stint_model_loaded" not in loaded()
    assert "loaded" not in json.loads(ask("GET", "/v2/models/a/ready")[2])


def same():
    """In turns: each has to come, and has the answers that it has when all fit."""
    wanted = json.load(open("wanted.json"))
    before = loaded()
    for _ in range(3):
        for m in "abct":
            assert answer(m) == wanted[m], m
            assert json.loads(ask("GET", f"/v2/models/{m}/ready")[2]) == {"ready": True, "loaded": True}
    after = loaded()
    assert sum(after["stint_model_loads_total"].values()) > sum(before["stint_model_loads_total"].values()), after
    assert 1 <= sum(after["stint_model_loaded"].values()) < 4, after


def crowd():
    """All at once: every request is answered, each by its model."""
    wanted, wrong = json.load(open("wanted.json")), []

    def client(number):
        r = random.Random(number)
        for _ in range(20):
            m = r.choice("abct")
            try:
                if answer(m) != wanted[m]:
                    wrong.append(m)
            except AssertionError as e:
                wrong.append(e)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong, wrong[:3]


def impatient():
    """Less time than loading takes: 503 at once, and the model comes all the same."""
    answer("a")
    answer("b")
    answer("c")
    out = [m for m in "ab" if not loaded()["stint_model_loaded"][m]]
    assert out
    head = HEAD[:-2] + b', "timeout": 1}}'
    status, headers, data = infer(out[0], head)
    assert status == 503 and b"being loaded" in data and int(headers["Retry-After"]) >= 1, (status, data)
    for _ in range(200):
        if loaded()["stint_model_loaded"][out[0]]:
            break
        threading.Event().wait(0.02)
    assert loaded()["stint_model_loaded"][out[0]]


def reload():
    first = answer("b")
    answer("a")
    answer("c")
    assert not loaded()["stint_model_loaded"]["b"]
    shutil.copy("m3/model.safetensors", "live/next")
    os.rename("live/next", "live/model.safetensors")
    status, _, data = ask("POST", "/v2/repository/models/b/load")
    assert status == 200, (status, data)
    assert answer("b") == json.load(open("wanted.json"))["c"] != first
    open("live/model.safetensors", "wb").write(b"none")
    assert ask("POST", "/v2/repository/models/b/load")[0] == 400
    answer("a")


def damaged():
    answer("b")
    answer("a")
    os.truncate("bad/model.safetensors", 5000)
    status, _, data = infer("b")
    assert status == 503 and b"could not be loaded" in data, (status, data)
    answer("a")


def drain():
    statuses = []
    threads = [threading.Thread(target=lambda m=m: statuses.append(infer(m)[0] if m != "t" else text()[0]))
               for m in "abctabct"]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert statuses == [200] * 8, statuses


globals()[WHAT]()
