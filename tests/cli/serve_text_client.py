"""Asks a server for texts: serve_text_client.py WHAT ADDRESS STINT MODEL [SERVER-PROCESS [MODEL...]]"""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

WHAT, ADDRESS, STINT, MODEL = sys.argv[1:5]
SERVER = int(sys.argv[5]) if len(sys.argv) > 5 else 0
MODELS = [MODEL] + sys.argv[6:]
WORDS = "the cät sat on a mat and saw some red hats".split()
PATH = "/v2/models/t/generate"


def connect():
    return http.client.HTTPConnection(ADDRESS, timeout=60)


def ask(c, path, body, method="POST"):
    c.request(method, path, body if isinstance(body, (str, bytes, type(None))) else json.dumps(body))
    r = c.getresponse()
    return r.status, dict(r.getheaders()), r.read()


def events(c, path, body):
    """The objects of a stream of events, as they come."""
    c.request("POST", path, json.dumps(body))
    r = c.getresponse()
    assert r.status == 200 and r.getheader("Content-Type") == "text/event-stream", (r.status, r.read())
    while True:
        line = r.readline()
        if not line:
            return
        line = line.decode().rstrip("\n")
        if line and line != "data: [DONE]":
            assert line.startswith("data: "), line
            yield json.loads(line[6:])


def versions():
    out = {}
    for m in MODELS:
        info = json.loads(subprocess.run([STINT, "info", m, "--json"], capture_output=True, check=True).stdout)
        out[info["weights_sha256"][:12]] = m
    return out


def requests(seed, count):
    r = random.Random(seed)
    for i in range(count):
        prompt = " ".join(r.choice(WORDS) for _ in range(r.choice([1, 3, 8, 20])))[:120]
        yield {"text_input": prompt,
               "parameters": {"max_tokens": r.choice([1, 5, 40, 150]), "seed": r.randrange(1000),
                              "temperature": r.choice([0, 0.8, 1.5]), "top_p": r.choice([1, 0.9]),
                              **({"top_k": r.choice([1, 5])} if r.random() < 0.3 else {})}}


def alone(q, model):
    """What stint run draws, a process of its own."""
    p = q["parameters"]
    out = subprocess.run(
        [STINT, "run", model, "--prompt", q["text_input"], "--tokens", str(p["max_tokens"]), "--seed",
         str(p["seed"]), "--temperature", str(p["temperature"]), "--top-p", str(p["top_p"]), "-j", "1", "--json"]
        + (["--top-k", str(p["top_k"])] if "top_k" in p else []), capture_output=True, check=True).stdout
    return json.loads(out)["text"]


def version_now():
    return json.loads(ask(connect(), "/v2/models/t", None, "GET")[2])["versions"][0]


def texts(reload=False):
    """Many clients at once: every text is that of stint run with the weights it names."""
    known = versions()
    wanted = {}
    queries = list(requests(1, 24))
    for model in known.values():
        for i, q in enumerate(queries):
            wanted[i, model] = alone(q, model)
    wrong, seen = [], set()

    def check(i, version, text):
        seen.add(version)
        if version not in known or text != wanted[i, known[version]]:
            wrong.append((queries[i], version, text))

    def client(number):
        r, c = random.Random(number), connect()
        for _ in range(12):
            i = r.randrange(len(queries))
            q = queries[i]
            how = r.randrange(3)
            if how == 0:
                status, _, data = ask(c, PATH, q)
                assert status == 200, (status, data)
                j = json.loads(data)
                assert j["model_name"] == "t" and j["details"]["tokens"] == q["parameters"]["max_tokens"], j
                check(i, j["model_version"], j["text_output"])
            elif how == 1:
                parts = list(events(c, PATH + "_stream", q))
                assert [p["done"] for p in parts] == [False] * (len(parts) - 1) + [True], parts
                check(i, parts[0]["model_version"], "".join(p["text_output"] for p in parts))
            else:
                body = {"model": "t", "prompt": q["text_input"], "stream": True, **q["parameters"]}
                parts = list(events(c, "/v1/completions", body))
                assert parts[-1]["choices"][0]["finish_reason"] == "length", parts[-1]
                check(i, parts[0]["system_fingerprint"], "".join(p["choices"][0]["text"] for p in parts))

    def guarded(number):
        try:
            client(number)
        except Exception as e:  # a thread's own failure is told, too
            wrong.append(repr(e))

    client(99)
    old = version_now()
    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(15)]
    [t.start() for t in threads]
    if reload:
        os.kill(SERVER, signal.SIGHUP)
        while version_now() == old:
            time.sleep(0.01)
    [t.join() for t in threads]
    client(100)
    assert not wrong, wrong[:3]
    print(len(seen))


def reload():
    texts(True)


def stops():
    c = connect()
    q = {"text_input": "the cät", "parameters": {"max_tokens": 100, "seed": 5}}
    whole = json.loads(ask(c, PATH, q)[2])["text_output"]
    stop = whole[20:24]
    want = whole[:whole.index(stop)]
    for stops in (stop, ["none of it", stop, "zzz"]):
        q["parameters"]["stop"] = stops
        j = json.loads(ask(c, PATH, q)[2])
        assert j["text_output"] == want and j["details"]["finish_reason"] == "stop", (j, want)
        parts = list(events(c, PATH + "_stream", q))
        assert "".join(p["text_output"] for p in parts) == want, parts
    assert json.loads(ask(c, PATH, q)[2])["details"]["tokens"] < 100
    # Parameters may stand beside the text, and null is the standard.
    flat = json.loads(ask(c, PATH, {"text_input": "the cät", "max_tokens": 100, "seed": 5, "stop": None})[2])
    assert flat["text_output"] == whole
    j = json.loads(ask(c, "/v1/completions", {"prompt": ["the"], "n": 1, "echo": False, "user": "me"})[2])
    assert j["object"] == "text_completion" and j["usage"]["completion_tokens"] == 16, j
    assert json.loads(ask(c, "/v1/models", None, "GET")[2])["data"][0]["id"] == "t"


def bad():
    c = connect()

    def refused(status, words, body, path=PATH):
        got, _, data = ask(c, path, body)
        text = json.loads(data)["error"]
        text = text["message"] if path.startswith("/v1/") else text
        assert got == status and words in text, (got, text, words)

    def given(**p):
        return {"text_input": "the", "parameters": p}

    refused(400, "JSON", "")
    refused(400, "JSON", "{")
    refused(400, "JSON", "[1]")
    refused(400, "2048 values", "[" * 100000)
    refused(400, "2048 values", '{"text_input":"a","x":[' + "1," * 5000 + "1]}")
    refused(400, "duplicate", '{"text_input":"a","text_input":"b"}')
    refused(400, "text_input", "{}")
    refused(400, "text_input", {"text_input": 5})
    refused(400, "empty", {"text_input": ""})
    refused(400, "no parameter 'fly'", given(fly=1))
    refused(400, "no parameter 'repetition_penalty'", given(repetition_penalty=1.2))
    for n in (0, -1, 1.5, "5", 10**9, 10**30):
        refused(400, "JSON" if n == 10**30 else "max_tokens", given(max_tokens=n))
    refused(400, "seed", given(seed=-1))
    refused(400, "temperature", given(temperature=-1))
    refused(400, "temperature", given(temperature="hot"))
    refused(400, "top_p", given(top_p=0))
    refused(400, "top_k", given(top_k=0))
    refused(400, "timeout", given(timeout=0))
    refused(400, "stop", given(stop=""))
    refused(400, "stop", given(stop=["x"] * 5))
    refused(400, "stop", given(stop="x" * 65))
    refused(400, "parameters", {"text_input": "a", "parameters": 5})
    refused(400, "JSON", '{"text_input":"a","temperature":NaN}')
    refused(422, "U+00F6", {"text_input": "dög"})
    refused(422, "sees at most", {"text_input": "the " * 1000})
    refused(400, "decode", b'{"text_input":"\xff\xfe"}')
    refused(404, "GET /v1/models", {"prompt": "the", "model": "other"}, "/v1/completions")
    refused(400, "text_input", {"text_input": "the"}, "/v1/completions")
    refused(400, "prompt", {"model": "t"}, "/v1/completions")
    refused(400, "'n'", {"prompt": "the", "n": 2}, "/v1/completions")
    refused(400, "prompt", {"prompt": ["a", "b"]}, "/v1/completions")
    refused(404, "generate", "{}", "/v2/models/t/infer")
    refused(404, "model", "{}", "/v2/models/other/generate")
    refused(429, "first token is expected", given(timeout=1))
    assert ask(c, "/v2/health/ready", None, "GET")[0] == 200
    assert ask(c, PATH, given(max_tokens=3))[0] == 200


def large():
    """A text that would take more memory than there is for requests."""
    got, _, data = ask(connect(), PATH, {"text_input": "the", "parameters": {"max_tokens": 1 << 20}})
    assert got == 413 and "max_tokens" in json.loads(data)["error"], (got, data)


def metric(name):
    for line in ask(connect(), "/metrics", None, "GET")[2].decode().splitlines():
        if line.startswith(name):
            return float(line.rsplit(" ", 1)[1])
    return None


def leave():
    """Clients that go away in the middle: what they asked for is drawn no further."""
    long = {"text_input": "the", "parameters": {"max_tokens": 100000}}
    many = []
    for i in range(4):
        c = connect()
        c.request("POST", PATH + ("_stream" if i % 2 else ""), json.dumps(long))
        if i % 2:
            assert c.getresponse().read(200)
        many.append(c)
    while metric("stint_texts{") < 4:
        time.sleep(0.01)
    for c in many:
        if c.sock:
            c.sock.close()
        c.close()
    del many, c
    for _ in range(500):
        if metric("stint_texts{") == 0:
            break
        time.sleep(0.01)
    assert metric("stint_texts{") == 0
    assert metric("stint_pages_free{") == json.loads(ask(connect(), "/v2/models/t", None, "GET")[2])["parameters"]["pages"]
    assert metric('stint_requests_total{model="t",result="failed"}') >= 4


def overload():
    """More than there is time for: each is answered in time, or refused beforehand."""
    statuses = []

    def client(number):
        q = {"text_input": "the cät sat on a mat " * 5, "parameters": {"max_tokens": 120, "seed": number}}
        statuses.append(ask(connect(), PATH, q)[0])

    threads = [threading.Thread(target=client, args=(i,)) for i in range(60)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert set(statuses) <= {200, 429, 504} and 200 in statuses, statuses
    print(statuses.count(200), statuses.count(429), statuses.count(504))


def hurried():
    """Half of the texts have a microsecond: all is taken, those are late, the others not."""
    statuses = {}

    def client(number):
        parameters = {"max_tokens": 8, "seed": number}
        if number % 2:
            parameters["timeout"] = 1
        q = {"text_input": "the cät sat on a mat", "parameters": parameters}
        statuses[number] = ask(connect(), PATH, q)[0]

    threads = [threading.Thread(target=client, args=(i,)) for i in range(60)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert statuses == {i: 504 if i % 2 else 200 for i in range(60)}, statuses


def drain():
    """The end while texts are drawn: they are drawn to their ends, and nothing new is."""
    c = connect()
    stream = events(c, PATH + "_stream", {"text_input": "the", "parameters": {"max_tokens": 400, "seed": 1}})
    first = next(stream)
    os.kill(SERVER, signal.SIGTERM)
    rest = list(stream)
    assert rest[-1]["done"] and rest[-1]["details"]["tokens"] == 400, rest[-1]
    text = first["text_output"] + "".join(p["text_output"] for p in rest)
    q = {"text_input": "the", "parameters": {"max_tokens": 400, "seed": 1, "temperature": 0.8, "top_p": 1}}
    assert text == alone(q, MODEL)


def cut_off():
    """The time to drain is over: a stream says that it is broken off, others get 503."""
    long = {"text_input": "the", "parameters": {"max_tokens": 100000}}
    stream, c = events(connect(), PATH + "_stream", long), connect()
    next(stream)
    c.request("POST", PATH, json.dumps(long))
    while metric("stint_texts{") < 2:
        time.sleep(0.01)
    os.kill(SERVER, signal.SIGTERM)
    last = list(stream)[-1]
    assert "broken off" in last.get("error", ""), last
    assert c.getresponse().status == 503


globals()[WHAT]()
