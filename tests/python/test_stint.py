"""The package `stint` against NumPy: unittest, run by python_test.sh."""
import ctypes
import gc
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import stint
from idx_data import CLASSES, SIDE, make_data
from stint import _library

def read_tensors(path):
    """Tensors and texts of a safetensors file, by the format's description."""
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    texts = head.pop("__metadata__")
    return {name: np.frombuffer(data[slice(*row["data_offsets"])], np.float32)
            .reshape(row["shape"]) for name, row in head.items()}, texts


class Stint(unittest.TestCase):
    """What all cases share: one small data set, one trained network."""

    @classmethod
    def setUpClass(cls):
        if hasattr(Stint, "result"):
            return
        Stint.folder = tempfile.TemporaryDirectory(prefix="stint-python-")
        Stint.data = f"{Stint.folder.name}/data"
        os.mkdir(Stint.data)
        make_data(Stint.data)
        Stint.seen = []
        Stint.keys = {"model.name": "mlp", "model.width": 24, "train.epochs": 2,
                      "train.batch": 24, "run.threads": 1}
        Stint.out = f"{Stint.folder.name}/run"
        Stint.result = stint.train(Stint.keys, Stint.data, run_out=Stint.out,
                                   callback=Stint.seen.append)

    def fails(self, status, call, *arguments, **keys):
        with self.assertRaises(stint.StintError) as caught:
            call(*arguments, **keys)
        self.assertEqual(caught.exception.status, status, str(caught.exception))
        self.assertTrue(str(caught.exception))
        return str(caught.exception)


class Training(Stint):
    def test_result(self):
        self.assertGreater(self.result.test_accuracy, 0.9)
        self.assertEqual(self.result.epochs, 2)
        self.assertEqual(self.result.out, os.path.realpath(self.out))
        self.assertLess(self.result.peak_rss_bytes, 4 << 30)
        self.assertEqual(len(self.result["weights_sha256"]), 64)

    def test_callback(self):
        self.assertTrue(self.seen)
        last = [p for p in self.seen if not p.evaluating][-1]
        self.assertEqual((last.step, last.epochs), (20, 2))

    def test_same_seed_same_bits(self):
        again = stint.train(self.keys, self.data, run_out=f"{self.folder.name}/again")
        self.assertEqual(again.weights_sha256, self.result.weights_sha256)

    def test_recipe_file(self):
        path = f"{self.folder.name}/recipe.ini"
        with open(path, "w", encoding="utf-8") as file:
            file.write("[model]\nname = mlp\nwidth = 24\n[train]\nepochs = 2\nbatch = 24\n")
        again = stint.train(path, self.data, run_out=f"{self.folder.name}/file",
                            run_threads=1)
        self.assertEqual(again.weights_sha256, self.result.weights_sha256)

    def test_exception_of_the_callback(self):
        def refuse(progress):
            raise KeyboardInterrupt("enough")
        with self.assertRaisesRegex(KeyboardInterrupt, "enough"):
            stint.train(self.keys, self.data, run_out=f"{self.folder.name}/stopped",
                        callback=refuse)
        again = stint.train(self.keys, self.data, run_out=f"{self.folder.name}/stopped",
                            resume=True)
        self.assertEqual(again.weights_sha256, self.result.weights_sha256)

    def test_plan(self):
        plan = stint.plan(self.keys, self.data)
        self.assertTrue(plan.fits)
        self.assertEqual(sum(plan.parts.values()), plan.peak_bytes)
        self.assertEqual(plan.parameters, sum(
            t.size for n, t in read_tensors(f"{self.out}/model.safetensors")[0].items()))
        tight = stint.plan(self.keys, self.data, run_memory="1M")
        self.assertFalse(tight.fits)

    def test_errors(self):
        words = self.fails(stint.Status.USAGE, stint.train, self.keys, self.data,
                           train_epoch=3)
        self.assertIn("epochs", words)
        self.fails(stint.Status.USAGE, stint.plan, {"train.batch": "many"})
        self.fails(stint.Status.BUDGET, stint.train, self.keys, self.data, run_memory="1M",
                   run_out=f"{self.folder.name}/no")
        self.assertFalse(os.path.exists(f"{self.folder.name}/no"))
        self.fails(stint.Status.IO, stint.train, "/nowhere.ini", self.data)

    def test_log(self):
        lines = []
        stint.set_log(lambda level, words: lines.append((level, words)))
        try:
            stint.plan(self.keys, self.data, run_memory="1G", train_batch="auto")
        finally:
            stint.set_log(None)
        self.assertTrue(all(isinstance(w, str) and 0 <= n <= 3 for n, w in lines))


class Images(Stint):
    def setUp(self):
        self.model = stint.load(self.out)
        rng = np.random.default_rng(2)
        self.x = rng.integers(0, 256, (50, SIDE, SIDE, 1), np.uint8)

    def tearDown(self):
        self.model.close()

    def expected(self, x):
        """The network in NumPy, double precision."""
        tensors, texts = read_tensors(f"{self.out}/model.safetensors")
        y = (x / 255.0 - float(texts["mean"])) / float(texts["deviation"])
        y = y.reshape(len(x), -1).astype(np.float64)
        layers = ["hidden0", "hidden1", "fc"]
        for i, layer in enumerate(layers):
            y = y @ tensors[f"{layer}.weight"] + tensors[f"{layer}.bias"]
            if i + 1 < len(layers):
                y = np.maximum(y, 0)
        return y

    def test_facts(self):
        self.assertEqual(self.model.network, "mlp")
        self.assertEqual(self.model.input_shape, (SIDE, SIDE, 1))
        self.assertEqual(self.model.classes, ["0", "1", "2"])
        self.assertEqual(self.model.facts["weights_sha256"], self.result.weights_sha256)

    def test_logits(self):
        want = self.expected(self.x)
        got = self.model(self.x)
        self.assertEqual((got.shape, got.dtype), ((50, CLASSES), np.float32))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_probabilities(self):
        want = np.exp(self.expected(self.x))
        np.testing.assert_allclose(self.model.probabilities(self.x),
                                   want / want.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)

    def test_forms(self):
        want = self.model(self.x)
        unit = self.x.astype(np.float32) / np.float32(255)
        np.testing.assert_array_equal(self.model(unit), want)
        _, texts = read_tensors(f"{self.out}/model.safetensors")
        normal = (unit - np.float32(texts["mean"])) / np.float32(texts["deviation"])
        np.testing.assert_array_equal(self.model(normal, normalised=True), want)
        np.testing.assert_array_equal(self.model(self.x[3]), want[3:4])

    def test_same_bits_in_any_batch(self):
        want = self.model(self.x)
        for batch, threads in ((1, 1), (7, 2), (64, 3)):
            with stint.load(self.out, batch=batch, threads=threads) as other:
                np.testing.assert_array_equal(other(self.x), want)

    def test_out(self):
        out = np.empty((50, CLASSES), np.float32)
        self.assertIs(self.model(self.x, out=out), out)
        np.testing.assert_array_equal(out, self.model(self.x))
        self.fails(stint.Status.INPUT, self.model, self.x, out=out[:10])

    def test_empty(self):
        self.assertEqual(self.model(self.x[:0]).shape, (0, CLASSES))

    def test_dlpack(self):
        class Foreign:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **keys):
                return self.array.__dlpack__(**keys)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()
        np.testing.assert_array_equal(self.model(Foreign(self.x)), self.model(self.x))

        class Elsewhere(Foreign):
            def __dlpack__(self, **keys):
                raise BufferError("on a device")
        self.fails(stint.Status.INPUT, self.model, Elsewhere(self.x))

    def test_wrong_arrays(self):
        words = self.fails(stint.Status.INPUT, self.model, self.x.astype(np.float64))
        self.assertIn("float64", words)
        words = self.fails(stint.Status.INPUT, self.model, self.x[:, :4])
        self.assertIn("8, 8, 1", words)
        nan = np.full((1, SIDE, SIDE, 1), np.nan, np.float32)
        self.fails(stint.Status.INPUT, self.model, nan)
        self.fails(stint.Status.INPUT, self.model, self.x, normalised=True)

    def test_not_dense_is_copied_and_said_once(self):
        from stint import _arrays
        _arrays._said.clear()
        view = np.repeat(self.x, 2, axis=2)[:, :, ::2]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(self.model(view), self.model(self.x))
            self.model(view)
        self.assertEqual(len(said), 1)

    def test_closed(self):
        self.model.close()
        self.model.close()
        self.fails(stint.Status.USAGE, self.model, self.x)

    def test_closed_while_it_runs(self):
        x = np.repeat(self.x, 400, axis=0)
        want, answers, refused = self.model(x), [], []

        def call():
            try:
                while True:
                    answers.append(self.model(x))
            except stint.StintError as error:
                refused.append(error.status)
        thread = threading.Thread(target=call)
        thread.start()
        while not answers:
            time.sleep(0.001)
        self.model.close()
        thread.join(20)
        self.assertEqual(refused, [stint.Status.USAGE])
        for answer in answers:
            np.testing.assert_array_equal(answer, want)

    def test_other_threads_run_meanwhile(self):
        x = np.repeat(self.x, 4000, axis=0)
        done, counted = threading.Event(), []

        def count():
            while not done.is_set():
                counted.append(time.perf_counter())
                time.sleep(0.0005)
        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        self.model(x)
        end = time.perf_counter()
        done.set()
        thread.join()
        self.assertGreater(sum(begin < t < end for t in counted), 1)

    def test_plan(self):
        plan = self.model.plan(batch=32)
        self.assertGreater(plan["planned_peak_bytes"], plan["weights_bytes"])
        self.assertGreaterEqual(plan["weights_bytes"], 4 * self.model.parameters)
        with stint.load(self.out, memory_bytes=1 << 20) as small:
            self.fails(stint.Status.BUDGET, small, self.x)

    def test_what_is_kept_of_weights(self):
        """Filters are made once where the budget has room for them; answers are the same."""
        out = f"{self.folder.name}/wide"
        stint.train({"model.name": "resnet8", "model.width": 128, "train.steps": 1, "train.epochs": 0,
                     "train.batch": 4, "train.shards": 1, "run.threads": 1}, self.data, run_out=out)
        with stint.load(out) as free:
            plan, want = free.plan(batch=2), free(self.x[:2])
            kept = plan["weights_bytes"] - 4 * free.parameters
        self.assertGreater(kept, 2 << 20)
        budget = plan["planned_peak_bytes"] + (16 << 20)
        for _ in range(64):  # one model after another leaves some memory resident
            with stint.load(out, memory_bytes=budget) as tight:
                less = tight.plan(batch=2)
                if less["weights_bytes"] < plan["weights_bytes"]:
                    np.testing.assert_array_equal(tight(self.x[:2]), want)
                    break
            budget -= 512 << 10
        self.assertLess(less["weights_bytes"], plan["weights_bytes"] - kept // 2)
        self.assertLessEqual(less["planned_peak_bytes"], budget)

    def test_load_errors(self):
        self.fails(stint.Status.IO, stint.load, "/nowhere")
        path = f"{self.folder.name}/cut"
        with open(f"{self.out}/model.safetensors", "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[:len(data) // 2])
        self.fails(stint.Status.INPUT, stint.load, path)

    def test_dropped(self):
        other = stint.load(self.out)
        other(self.x)
        del other
        gc.collect()


class Text(Stint):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = f"{Stint.folder.name}/text.txt"
        with open(cls.path, "w", encoding="utf-8") as file:
            file.write("the cat sat on the mat. " * 200)
        cls.text_out = f"{Stint.folder.name}/text"
        if not os.path.exists(cls.text_out):
            stint.train({"model.name": "gpt", "model.depth": 1, "model.width": 16,
                         "model.heads": 2, "model.context": 16, "train.steps": 60,
                         "train.batch": 8, "data.tokenizer": "char", "optimizer.lr": 0.01,
                         "run.threads": 1}, cls.path, run_out=cls.text_out)

    def setUp(self):
        self.model = stint.load(self.text_out, threads=1)

    def test_text(self):
        words = self.model.generate("the cat ", 12, temperature=0)
        self.assertEqual(len(words), 12)
        self.assertEqual(words, self.model.generate("the cat ", 12, temperature=0))
        self.assertEqual("the cat " + words,
                         self.model.decode(self.model.encode("the cat " + words)))

    def test_tokens(self):
        prompt = self.model.encode("the cat ")
        tokens = self.model.generate(prompt, 12, temperature=0)
        self.assertEqual(tokens.dtype, np.int32)
        self.assertEqual(self.model.decode(tokens),
                         self.model.generate("the cat ", 12, temperature=0))
        self.assertEqual(list(self.model.tokens("the cat ", 3, temperature=0)),
                         list(tokens[:3]))

    def test_logits(self):
        prompt = self.model.encode("the cat ")
        scores = self.model.logits(prompt)
        self.assertEqual(scores.shape, (self.model.vocabulary,))
        self.assertEqual(int(scores.argmax()),
                         self.model.generate(prompt, 1, temperature=0)[0])

    def test_gguf(self):
        here = os.path.dirname(os.path.abspath(__file__))
        path = os.path.join(here, "..", "..", "fuzz", "corpus", "gguf", "llama-q8")
        with stint.load(path, threads=1) as model:
            self.assertEqual((model.family, model.vocabulary), ("llama", 12))
            want = model.logits(np.concatenate([[1], model.encode("the")]).astype(np.int32))
            np.testing.assert_array_equal(model.logits("the"), want)  # behind <s>

    def test_seed(self):
        draw = [self.model.generate("the ", 10, temperature=3.0, seed=s) for s in (1, 1, 2)]
        self.assertEqual(draw[0], draw[1])
        self.assertNotEqual(draw[0], draw[2])

    def test_errors(self):
        self.fails(stint.Status.INPUT, self.model.generate, "")
        self.fails(stint.Status.INPUT, self.model.generate, "Q\u00e9")
        self.fails(stint.Status.INPUT, self.model.logits, np.array([10 ** 6], np.int32))
        self.fails(stint.Status.INPUT, self.model.logits, np.zeros(2, np.float32))
        self.model.close()
        self.fails(stint.Status.USAGE, self.model.generate, "the ")


class Arrays(Stint):
    def test_topk(self):
        rng = np.random.default_rng(3)
        for name in ("float32", "float16", "float64", "int64", "uint8", "int16"):
            x = (rng.normal(0, 40, (5, 300))).astype(name)
            values, index = stint.topk(x, 7)
            order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :7]
            np.testing.assert_array_equal(index, order, name)
            np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))

    def test_topk_options(self):
        x = np.array([3, np.nan, -5, 1], np.float32)
        self.assertEqual(list(stint.topk(x, 2)[1]), [0, 3])
        self.assertEqual(list(stint.topk(x, 2, key="min")[1]), [2, 3])
        self.assertEqual(list(stint.topk(x, 2, key="abs")[1]), [2, 0])
        self.assertEqual(list(stint.topk(x, 2, nan="first")[1]), [1, 0])
        self.assertEqual(list(stint.topk(x, 3, sorted=False, nan="first")[1]), [0, 1, 3])
        self.assertEqual(stint.topk(x, 9)[0].shape, (4,))
        self.assertEqual(stint.topk(np.zeros((0, 5), np.float32), 2)[0].shape, (0, 2))
        self.fails(stint.Status.INPUT, stint.topk, x, 2, nan="error")
        self.fails(stint.Status.USAGE, stint.topk, x, 2, key="best")
        self.fails(stint.Status.USAGE, stint.topk, x, -1)
        self.fails(stint.Status.INPUT, stint.topk, np.float32(3), 1)
        self.fails(stint.Status.INPUT, stint.topk, x.astype(np.complex64), 1)

    def test_pack(self):
        x = np.random.default_rng(4).normal(0, 1, (3, 16, 16, 8)).astype(np.float32)
        x[0] = 0
        x[1, 0, 0, 0] = np.inf
        for bound in (1e-1, 1e-3):
            packed = stint.pack(x, bound)
            y = stint.unpack(packed)
            finite = np.isfinite(x)
            error = np.abs(y[finite].astype(np.float64) - x[finite]).max()
            self.assertLessEqual(error, bound)
            self.assertAlmostEqual(packed.max_error, error, delta=1e-7)
            self.assertTrue((y[0] == 0).all() and np.isinf(y[1, 0, 0, 0]))
            self.assertLess(len(packed.block), x.nbytes / 2)
        self.assertEqual(stint.pack(x, 0.1).block, stint.pack(x, 0.1, threads=3).block)
        out = np.empty_like(x)
        self.assertIs(stint.unpack(packed.block, out=out), out)

    def test_damaged(self):
        block = bytearray(stint.pack(np.ones((4, 4), np.float32), 0.1).block)
        block[-1] ^= 1
        self.fails(stint.Status.INPUT, stint.unpack, bytes(block))
        self.fails(stint.Status.INPUT, stint.unpack, b"")
        self.fails(stint.Status.USAGE, stint.pack, np.ones(4, np.float32), -1.0)
        self.fails(stint.Status.USAGE, stint.pack, np.ones((1,) * 5, np.float32), 0.1)
        self.fails(stint.Status.INPUT, stint.unpack, stint.pack(np.ones(4, "f4"), 0.1),
                   out=np.ones(4))


class Library(unittest.TestCase):
    def test_layout(self):
        """The structures are those of the headers, by a C program that prints theirs."""
        includes = os.environ.get("STINT_INCLUDES")
        if not includes:
            self.skipTest("no STINT_INCLUDES")
        structures = [v for v in vars(_library).values() if isinstance(v, type)
                      and issubclass(v, ctypes.Structure) and v is not ctypes.Structure]
        want, lines = [], []
        for each in structures:
            name = each.__doc__.split()[0]
            want.append((name, "-", 0, ctypes.sizeof(each)))
            lines.append(f'printf("{name} - 0 %zu\\n", sizeof({name}));')
            for field, _ in each._fields_:
                here = getattr(each, field)
                want.append((name, field, here.offset, here.size))
                lines.append(f'printf("{name} {field} %zu %zu\\n", '
                             f'offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/layout.c", "w", encoding="utf-8") as file:
                file.write("#include <stdio.h>\n#include <stint/stint.h>\nint main(void)\n{\n"
                           + "\n".join(lines) + "\nreturn 0;\n}\n")
            subprocess.run([os.environ.get("CC", "cc"), f"{folder}/layout.c", "-o",
                            f"{folder}/layout"] + [f"-I{i}" for i in includes.split(":")],
                           check=True)
            printed = subprocess.run([f"{folder}/layout"], check=True, capture_output=True,
                                     text=True).stdout
        got = [(n, f, int(o), int(s)) for n, f, o, s in map(str.split, printed.splitlines())]
        self.assertEqual(got, want)

    def test_no_library(self):
        code = "import stint"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                env=dict(os.environ, STINT_LIBRARY="/nowhere/libstint.so"),
                                check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("/nowhere/libstint.so cannot be loaded", result.stderr)


if __name__ == "__main__":
    unittest.main()
