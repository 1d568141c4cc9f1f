"""Trains models of bench.py on ranks that are forked from one process, on the CPU, and prints how far each ends from one process with the whole batch.

usage: ranks_child.py JSON: [[ranks, model, strategy, samples a rank, the strategy of the one process, samples of the whole batch], ...]
"""

import json
import os
import socket
import sys
import traceback

import ring_on_cpu  # noqa: F401
import torch
import torch.distributed.fsdp
import torch.distributed.optim
import torch.distributed.pipelining
import torch.distributed.tensor.parallel
import transformers  # noqa: F401

from peakbench import bench

ANY = {"promise": "within_tolerance", "tolerance": 1e9, "relative_tolerance": 0}


def trained(ranks, model, strategy, batch, name):
    """The exit codes of the ranks; the losses and parameters are left in NAME."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            torch.set_num_threads(1)  # makes the pool anew before autograd's threads all ask for it
            code = 1
            try:
                if ranks > 1:
                    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                os.environ["PEAKBENCH_TRAINED"] = json.dumps({"losses": name + ".json", "parameters": name})
                code = bench.main(["bench.py", "--model", model, "--strategy", strategy, "--batch", str(batch), "--device", "cpu"])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main():
    for ranks, model, strategy, batch, whole, samples in json.loads(sys.argv[1]):
        reference = f"whole-{model}-{whole}-{samples}"
        if not os.path.exists(reference):
            assert trained(1, model, whole, samples, reference) == [0]
        codes = trained(ranks, model, strategy, batch, "ranks")
        ours, theirs = (torch.load(name, weights_only=True) for name in ("ranks", reference)) if set(codes) == {0} else (None, None)
        told = bench._equivalence(torch, ours, theirs, ANY) if ours else {"reason": f"exit codes {codes}"}
        print(json.dumps([strategy, told.get("max_abs_difference"), told["reason"]]), flush=True)


main()
