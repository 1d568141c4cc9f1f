"""Runs several cases of the oracle scripts in one process tree: every import once, one fork a case, so that each case begins with a
CUDA that nobody has used. Prints a JSON list: what each script printed, or {"error": ...}.

usage: peakbench emulate --card h100-80gb -- ORACLE-PYTHON stock_cases.py CASES.json     [["vit", "--strategy", "lora"], ...]
"""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))

import peft  # noqa: F401  (imported here so that no case imports it again)
import torch

import decoder
import gpt2
import resnet
import vit

SCRIPTS = {"vit": vit, "decoder": decoder, "gpt2": gpt2, "resnet": resnet}


def child(script, arguments, result):
    sys.argv = [f"{script}.py", *arguments]
    try:
        with open(result, "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            SCRIPTS[script].main()
    except BaseException:
        pathlib.Path(result).write_text(json.dumps({"error": traceback.format_exc()[-6000:]}), encoding="utf-8")
        return 1
    return 0


def run(script, *arguments):
    if torch.cuda.is_initialized():
        sys.exit("CUDA was initialised before the first case: a fork could not use it")
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "result.json")
        process = os.fork()
        if process == 0:
            # Without the interpreter's own exit, which would delete the parent's folder.
            code = child(script, arguments, result)
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(process, 0)
        try:
            return json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return {"error": f"wait status {status}, {error}"}


if __name__ == "__main__":
    cases = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump([run(*case) for case in cases], sys.stdout)
    print()
