"""Oracles of the tests of stint svm: one process that answers many questions, since
Python's start with NumPy takes longer than most of them."""
import json
import shlex
import sys


def check_json(expression):
    j = json.load(open("out"))
    assert eval(expression, {"j": j}), {k: v for k, v in j.items() if k in expression}


def run(functions):
    """`SCRIPT NAME ARGUMENT ...` calls one; `SCRIPT serve` reads such calls, a line each,
    and answers each with "ok" or what went wrong."""
    functions["json"] = check_json
    if sys.argv[1] != "serve":
        functions[sys.argv[1]](*sys.argv[2:])
        return
    for line in sys.stdin:
        name, *arguments = shlex.split(line)
        try:
            functions[name](*arguments)
            print("ok", flush=True)
        except Exception as error:
            print(type(error).__name__, " ".join(str(error).split()), flush=True)
