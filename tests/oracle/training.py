"""The training step that every oracle script runs, and the arguments they share."""

import argparse
import contextlib
import functools
import json
import statistics
import sys
import time

import torch
import torch.utils.checkpoint

import memory
import strategies
import tensors

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", default="baseline", help="a stack: lora,rank=16+checkpointing,every=2")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="fp32", choices=DTYPES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--weights", help="safetensors file with the initial parameters")
    parser.add_argument("--input", help="safetensors file with the batch, as --save writes it")
    parser.add_argument("--randomise", action="store_true", help="no parameter starts at zero or one")
    parser.add_argument("--save-weights", help="writes the initial parameters (adapters too) to this safetensors file")
    parser.add_argument("--save", help="writes the batch, the output of the first forward, first-step gradients (grad.NAME), "
                                       "final parameters (after.NAME) and running statistics (running.NAME) to this "
                                       "safetensors file; memory is not measured then")
    parser.add_argument("--time", type=int, metavar="N", help="times N steps after --warmup; memory is not measured then")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--empty-cache", action="store_true", help="CUDA: what building reserved and no longer uses is given back "
                                                                   "before the first step")
    return parser


def parse(parser, overrides):
    """overrides: option -> key of the model's configuration. Returns the arguments and the keys that were given."""
    for option, key in overrides.items():
        parser.add_argument(f"--{option}", type=int, help=f"overrides {key}")
    args = parser.parse_args()
    given = {key: getattr(args, option.replace("-", "_")) for option, key in overrides.items()}
    return args, {key: value for key, value in given.items() if value is not None}


class Subject:
    """What a script hands over: how to build the model and its batch, and what the strategies need to know of it."""

    def build(self):
        raise NotImplementedError

    @contextlib.contextmanager
    def defaults(self):
        """What is made inside is of the dtype that the arguments name, and on their device or the one that the model is built on."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(DTYPES[self.args.dtype])
        try:
            with torch.device(self.builds_on or self.args.device):
                yield
        finally:
            torch.set_default_dtype(before)

    def batch(self):
        """Name -> tensor, on the device."""
        raise NotImplementedError

    def forward(self, model, batch):
        """-> (output, loss); the output is looked at only where it is saved."""
        raise NotImplementedError

    def blocks(self, model):
        raise NotImplementedError

    def checkpoint(self, model, blocks, every, **extra):
        """Puts every n-th block under non-reentrant checkpointing, with extra arguments for it."""
        for block in blocks[::every]:
            block.forward = functools.partial(torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False, **extra)

    optimizer_class = torch.optim.Adam
    optimizer_options = {}
    lora_targets = {}
    loss_is_a_sum = False  # over samples; else their mean
    base = None  # what build() returned
    builds_on = None  # another device than the arguments'


def prepare(subject, args, stack):
    """Build, adapt, checkpoint, initialise: the model ready for its first step."""
    torch.manual_seed(args.seed)
    subject.builds_on = "cpu" if strategies.builds_on_host(stack) else None
    subject.base = subject.build().train()
    subject.builds_on = None
    model = strategies.prepare(subject.base, stack, subject)
    if args.randomise:
        tensors.randomise(model, args.seed)
    if args.weights:
        tensors.load_into(model, args.weights)
    if args.save_weights:
        tensors.save(args.save_weights, tensors.named(model) | tensors.buffers(model))
    return model


def load_batch(subject, args):
    if not args.input:
        return subject.batch()
    from safetensors.torch import load_file

    given = load_file(args.input)
    return {name.removeprefix("input."): tensor.to(args.device) for name, tensor in given.items() if name.startswith("input.")}


def keep_gradients(model, kept, is_last):
    """Copies each gradient as it is first complete, before any update; hooks fire in the order they were registered."""

    def keep(name):
        def hook(parameter):
            if is_last() and f"grad.{name}" not in kept:
                kept[f"grad.{name}"] = parameter.grad.detach().cpu().clone()

        return hook

    for name, parameter in tensors.named(model).items():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(keep(name))


def run(subject, args):
    """Runs the steps; returns what is printed as JSON."""
    if args.threads:
        torch.set_num_threads(args.threads)
    stack = strategies.parse(args.strategy)
    kept, losses, times = {}, [], []
    with memory.recorder(args.device, wanted=not (args.time or args.save)) as recorder:
        with recorder.phase("build"):
            model = prepare(subject, args, stack)
            batch = load_batch(subject, args)
            step = None
            if args.save:
                keep_gradients(model, kept, lambda: step.last_micro_batch)
                kept |= {f"input.{name}": tensor for name, tensor in tensors.copy_of(batch).items()}
            step = strategies.Step(subject, model, stack)
            if args.empty_cache:
                torch.cuda.empty_cache()
            torch.manual_seed(args.seed)  # what steps draw does not depend on what building drew

        def look(output):
            kept["output"] = output.detach().cpu().clone()

        for k in range(args.warmup + args.time if args.time else args.steps):
            began = time.perf_counter_ns()
            loss = step(k, batch, recorder.phase, look if args.save and k == 0 else None)
            if args.device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter_ns() - began)
            losses.append(loss.detach().float().item() if args.device == "cpu" else None)
            del loss
    if args.save:
        kept |= {f"after.{name}": tensor for name, tensor in tensors.copy_of(tensors.named(model)).items()}
        kept |= {f"running.{name}": tensor for name, tensor in tensors.copy_of(tensors.buffers(model)).items() if "running_" in name}
        kept["losses"] = torch.tensor(losses, dtype=torch.float64)
        tensors.save(args.save, kept)
    return describe(args, model, batch, recorder.result(), losses, times)


def describe(args, model, batch, memory_result, losses, times):
    result = {
        "strategy": args.strategy,
        "device": args.device,
        "dtype": args.dtype,
        "batch_size": args.batch,
        "threads": torch.get_num_threads(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "trainable_parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "input_bytes": sum(t.nbytes for t in batch.values()),
        "torch": torch.__version__,
    }
    if memory_result:
        result["memory"] = memory_result
    if args.device == "cpu":
        result["losses"] = losses
    if args.time:
        timed = times[args.warmup :]
        result["step_ns"] = {"median": int(statistics.median(timed)), "min": min(timed), "all": timed}
    return result


def main(subject, args, **facts):
    json.dump(facts | run(subject, args), sys.stdout, indent=1)
    print()
