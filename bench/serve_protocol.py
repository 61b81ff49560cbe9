#!/usr/bin/env python3
"""Clients that others wrote, against stint serve: NVIDIA's tritonclient (health, metadata, infer as JSON and as
binary data, outputs by name), OpenAI's client (models, completions, streamed completions) and Prometheus's parser.

    bench/serve_protocol.py STINT       (pip install 'tritonclient[http]' openai prometheus-client numpy)

Each answer is held against `stint run` or against another way to ask. Prints a line a call; status 1 where one fails.
Models are small and trained here; half a minute."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

LINES = [f"{a} {b} {c}." for a in ("a cat", "the dog", "my hat") for b in ("sat on", "saw") for c in ("it", "the mat")] * 40
INI = {"a": "[model]\nname = lenet5\n[train]\nepochs = 1\nbatch = 48\n",
       "t": "[model]\nname = gpt\ndepth = 1\nwidth = 32\nheads = 2\ncontext = 64\n[data]\npath = text.txt\n"
            "tokenizer = char\n[train]\nsteps = 40\nbatch = 4\n"}
failed = 0


def check(what, good, seen=""):
    global failed
    failed += not good
    print(f"{'ok  ' if good else 'FAIL'} {what}{'' if good else ': ' + str(seen)[:300]}", flush=True)


def triton(address, image):
    import tritonclient.http as http
    client = http.InferenceServerClient(address)
    check("tritonclient: server live, ready; model ready", client.is_server_live() and client.is_server_ready()
          and client.is_model_ready("m"))
    about = client.get_server_metadata()
    check("tritonclient: server metadata", about["name"] == "stint" and "binary_tensor_data" in about["extensions"], about)
    model = client.get_model_metadata("m")
    check("tritonclient: model metadata", model["inputs"][0]["name"] == "image"
          and {o["name"] for o in model["outputs"]} >= {"probabilities", "class"}, model)
    batch = np.stack([image, image[::-1], 255 - image])[..., None]
    seen = {}
    for datatype in ("UINT8", "FP32"):
        for binary in (False, True):
            x = http.InferInput("image", list(batch.shape), datatype)
            x.set_data_from_numpy(batch.astype(np.uint8 if datatype == "UINT8" else np.float32), binary_data=binary)
            outputs = [http.InferRequestedOutput(n, binary_data=binary) for n in ("probabilities", "class", "logits")]
            answer = client.infer("m", [x], outputs=outputs, request_id="7")
            p, c, z = (answer.as_numpy(n) for n in ("probabilities", "class", "logits"))
            good = (p.shape == (3, p.shape[1]) and np.allclose(p.sum(1), 1, atol=1e-5) and (p.argmax(1) == c).all()
                    and np.allclose(np.exp(z - z.max(1, keepdims=True))
                                    / np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True), p, atol=1e-5)
                    and answer.get_response()["id"] == "7")
            check(f"tritonclient: infer, {datatype}, {'binary' if binary else 'JSON'}", good, answer.get_response())
            seen[datatype, binary] = p
    check("tritonclient: the four ways give one answer",
          all(np.abs(p - seen["UINT8", True]).max() < 1e-6 for p in seen.values()))
    x = http.InferInput("image", [1, 5, 5, 1], "UINT8")
    x.set_data_from_numpy(np.zeros((1, 5, 5, 1), np.uint8))
    try:
        client.infer("m", [x])
        check("tritonclient: a wrong shape is refused", False)
    except http.InferenceServerException as e:
        check("tritonclient: a wrong shape is refused with words", "400" in str(e.status()) and "1, 5, 5, 1" in e.message(), e)
    client.load_model("m")
    check("tritonclient: load_model", client.is_model_ready("m"))
    return seen["UINT8", True]


def openai_client(address, stint):
    from openai import NotFoundError, OpenAI
    client = OpenAI(base_url=f"http://{address}/v1", api_key="none", max_retries=0)
    check("openai: models.list", [m.id for m in client.models.list()] == ["t"])
    whole = client.completions.create(model="t", prompt="the dog", max_tokens=24, seed=3, temperature=0.8)
    want = subprocess.run([stint, "run", "t", "--prompt", "the dog", "--tokens", "24", "--seed", "3", "--temperature", "0.8"],
                          capture_output=True, text=True).stdout
    check("openai: completions.create gives what `stint run` draws", want.rstrip("\n") == "the dog" + whole.choices[0].text
          or want.rstrip("\n") == whole.choices[0].text, (want, whole))
    check("openai: usage and finish_reason", whole.usage.completion_tokens == 24 and whole.choices[0].finish_reason == "length", whole)
    parts = list(client.completions.create(model="t", prompt="the dog", max_tokens=24, seed=3, temperature=0.8, stream=True))
    text = "".join(p.choices[0].text for p in parts if p.choices)
    check("openai: a stream is the same text", text == whole.choices[0].text and len(parts) > 1, (len(parts), text, whole.choices[0].text))
    stopped = client.completions.create(model="t", prompt="my hat", max_tokens=60, seed=1, stop=["."])
    check("openai: stop", "." not in stopped.choices[0].text, stopped)
    try:
        client.completions.create(model="nobody", prompt="x")
        check("openai: an unknown model is refused", False)
    except NotFoundError as e:
        check("openai: an unknown model is refused with 404", "error" in str(e).lower(), e)


def prometheus(address):
    from prometheus_client.parser import text_string_to_metric_families
    text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    families = {f.name: f for f in text_string_to_metric_families(text)}
    served = sum(s.value for n, f in families.items() for s in f.samples
                 if n.startswith("stint_requests") and "served" in str(s.labels))
    check("prometheus: /metrics parses, requests are counted", len(families) > 5 and served == 7, (served, sorted(families)))
    check("prometheus: every family has a help and a type", all(f.documentation and f.type != "unknown" for f in families.values()),
          [n for n, f in families.items() if not f.documentation or f.type == "unknown"])


def main():
    stint = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        open("text.txt", "w").write("\n".join(LINES))
        for name, text in INI.items():
            open(name + ".ini", "w").write(text)
        for command in (["data", "glyphs", "--out", "g", "--train", "96", "--test", "36", "--size", "28"],
                        ["train", "a.ini", "--data", "g", "--out", "m"], ["train", "t.ini", "--out", "t"]):
            subprocess.run([stint, *command, "-q"], check=True, capture_output=True)
        server = subprocess.Popen([stint, "serve", "m", "t", "--sla", "20s", "--listen", "127.0.0.1:0",
                                   "--address-file", "address", "-q"], stderr=subprocess.PIPE)
        try:
            while not os.path.exists("address"):
                if server.poll() is not None:
                    sys.exit("stint serve did not begin: " + server.stderr.read().decode())
                time.sleep(0.05)
            address = open("address").read().strip()
            triton(address, (np.arange(784) * 7 % 251).reshape(28, 28))
            openai_client(address, stint)
            prometheus(address)
        finally:
            server.send_signal(signal.SIGTERM)
            check("the server drains and ends with 0", server.wait(60) == 0, server.returncode)
    print("all calls pass" if not failed else f"{failed} calls failed")
    sys.exit(failed > 0)


main()
