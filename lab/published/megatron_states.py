"""Model states of Megatron-LM's distributed optimizer, on stock PyTorch: Llama 3 70B cut to 12 layers, as SimuMax trained it on B200 under tensor
and data parallelism (github.com/MooreThreads/SimuMax, docs/b200/b200_release_v1.2_summary.md; sizes of its run_pretrain_llama3.sh).

A rank has its part of the parameters in bf16 and their gradients in fp32, each in one buffer, and 1/DP of the fp32 weights and AdamW's two
moments: (6 + 12/DP) bytes for each of its parameters. Prints what the first rank holds between two steps.

usage: peakbench emulate --card b200-180gb -- python3 lab/published/megatron_states.py --tensor 4 --data 2
       peakbench run --program lab/published/megatron_states.py:llama,vocabulary=129024 --ranks 8 --card b200-180gb \\
           --strategy tensor-parallel+distributed-optimizer --out results/states    (a single data-parallel rank)
"""

import argparse
import json
import math
import os

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

import peakbench

DATA = "data"  # the dimension of the mesh over which the optimizer's state is sharded


@peakbench.model
def llama(batch=1, length=4096, vocabulary=128_256):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=vocabulary, hidden_size=8192, intermediate_size=28_672, num_hidden_layers=12, num_attention_heads=64,
                         num_key_value_heads=8, max_position_embeddings=length, tie_word_embeddings=False, use_cache=False)  # fmt: skip
    model = LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)
    tokens = torch.zeros(batch, length, dtype=torch.int64, device="cuda")
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


def local(tensor, placements=None):
    """This rank's part, in the parameter's placements if given."""
    if not isinstance(tensor, DTensor):
        return tensor
    return (tensor.redistribute(placements=placements) if placements else tensor).to_local()


@peakbench.strategy
def distributed_optimizer(model, optimizer, mesh):
    """It takes `optimizer` to be called after tensor-parallel has given parameters their memory, and replaces it."""
    return built(model, mesh)[0]


def built(model, mesh):
    """-> the function of a step, and a function of the bytes held by it. Megatron-LM's --use-distributed-optimizer, without overlap."""
    group = mesh[DATA].get_group() if DATA in (mesh.mesh_dim_names or ()) else None
    ranks, rank = (dist.get_world_size(group), dist.get_rank(group)) if group else (1, 0)
    parameters = list(model.parameters())
    with torch.no_grad():
        parts = [local(one) for one in parameters]
        count = sum(one.numel() for one in parts)
        padded = math.ceil(count / math.lcm(ranks, 128)) * math.lcm(ranks, 128)
        weights = torch.empty(padded, dtype=torch.bfloat16, device="cuda")
        gradients = torch.zeros(padded, dtype=torch.float32, device="cuda")
        end = 0
        for parameter, part in zip(parameters, parts):
            begin, end = end, end + part.numel()
            part.set_(weights[begin:end].view_as(part).copy_(part))
            add_to(gradients[begin:end].view_as(part), parameter)
        mine = [one.view(ranks, -1)[rank] for one in (weights, gradients)]
        master = torch.nn.Parameter(mine[0].float())
    adam = torch.optim.AdamW([master], lr=1e-4, fused=True)

    def step(loss):
        gradients.zero_()
        value = loss()
        value.backward()
        if group:
            dist.reduce_scatter_tensor(mine[1], gradients, dist.ReduceOp.AVG, group)
        master.grad = mine[1]
        adam.step()
        with torch.no_grad():
            mine[0].copy_(master)
            if group:
                dist.all_gather_into_tensor(weights, mine[0], group)
        return value.detach()

    def held():
        state = [master, *(adam.state[master][name] for name in ("exp_avg", "exp_avg_sq"))]
        return {"parameter": weights.nbytes, "gradient": gradients.nbytes, "optimizer_state": sum(one.nbytes for one in state)}

    return step, held


def add_to(whole, parameter):
    """Once a gradient has arrived it is added in fp32, and freed."""

    def add(given):
        whole.add_(local(given.grad, getattr(given, "placements", None)))
        given.grad = None

    parameter.register_post_accumulate_grad_hook(add)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensor", type=int, required=True, help="tensor-parallel ranks")
    parser.add_argument("--data", type=int, required=True, help="data-parallel ranks")
    parser.add_argument("--steps", type=int, default=2)
    given = parser.parse_args()
    from peakbench.strategies import tensor_parallel

    os.environ["PEAKBENCH_EMULATED_RANKS"] = "alone"
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=given.tensor * given.data, store=dist.HashStore())
    mesh = dist.init_device_mesh("cuda", (given.data, given.tensor), mesh_dim_names=(DATA, "tensor"))
    rows = 128 * given.tensor  # Megatron-LM pads the vocabulary to a multiple
    with torch.device("meta"):
        model, loss = llama(vocabulary=math.ceil(128_256 / rows) * rows)
    total = sum(one.numel() for one in model.parameters())
    whole = sum(one.numel() for one in model.parameters() if one.ndim == 1)  # norms, which tensor parallelism does not split
    tensor_parallel(model, mesh["tensor"]).to_empty(device="cuda")
    step, held = built(model, mesh)
    for _ in range(given.steps):
        step(loss)
    states = held()
    states["sum"] = sum(states.values())
    assert states["sum"] == (6 + 12 / given.data) * ((total - whole) / given.tensor + whole)
    print(json.dumps({**states, "parameters": total, "allocated": torch.cuda.memory_allocated()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
