"""Servers of others for bench/serve_bench.py and bench/serve_rows.py: mosec and litserve with ONNX Runtime, a worker
with one thread of it a CPU, or fewer workers with more threads each. A query is some images of bytes, one channel; they
are merged within 2 ms."""
import os
import socket

SESSION = """
import sys
import numpy as np, onnxruntime as ort
def session():
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = THREADS, 1
    return ort.InferenceSession("MODEL", o, providers=["CPUExecutionProvider"])
def images(data):
    return np.frombuffer(data, np.uint8).reshape(-1, SIDE, SIDE)
def run(s, many):  # queries of some images each, in one call
    x, i = (np.concatenate(many).astype(np.float32) - 127.5) / 127.5, s.get_inputs()[0]
    y = s.run(None, {i.name: x.reshape([len(x)] + [d if isinstance(d, int) else SIDE for d in i.shape[1:]])})[0]
    return np.split(y, np.cumsum([len(m) for m in many])[:-1])
"""
MOSEC = SESSION + """
from mosec import Server, Worker
class W(Worker):
    def __init__(self):
        self.s = session()
    def deserialize(self, data):
        return images(data)
    def serialize(self, data):
        return data.tobytes()
    def forward(self, data):
        return run(self.s, data) if isinstance(data, list) else run(self.s, [data])[0]
server = Server()
server.append_worker(W, num=WORKERS, max_batch_size=MERGE, max_wait_time=2)
server.run()
"""
LITSERVE = SESSION + """
import base64, litserve as ls
class A(ls.LitAPI):
    def setup(self, device):
        self.s = session()
    def decode_request(self, request):
        return images(base64.b64decode(request["image"]))
    def batch(self, inputs):
        return inputs
    def predict(self, x):
        return run(self.s, x) if isinstance(x, list) else run(self.s, [x])[0]
    def unbatch(self, out):
        return out
    def encode_response(self, out):
        return {"logits": out.tolist()}
if __name__ == "__main__":
    ls.LitServer(A(max_batch_size=MERGE, batch_timeout=0.002 if MERGE > 1 else 0), accelerator="cpu",
                 workers_per_device=WORKERS).run(
        host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def request(path, body, headers=""):
    """A whole request, for a file of bench/http_load_bench.c."""
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n").encode() + body


def write_server(name, model, side, merge, workers=None):
    """NAME_server.py here, and the arguments behind it; PORT stands for the port."""
    cpus = len(os.sched_getaffinity(0))
    words = {"MODEL": model, "SIDE": str(side), "WORKERS": str(workers or cpus),
             "THREADS": str(cpus // (workers or cpus)), "MERGE": str(merge)}
    text = MOSEC if name == "mosec" else LITSERVE
    for word, value in words.items():
        text = text.replace(word, value)
    open(f"{name}_server.py", "w").write(text)
    mosec = ["--address", "127.0.0.1", "--port", "PORT", "--timeout", "100000", "--log-level", "error"]
    return [f"{name}_server.py"] + (mosec if name == "mosec" else ["PORT"])
