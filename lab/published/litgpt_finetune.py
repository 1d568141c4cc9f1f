"""LitGPT's config hub (github.com/Lightning-AI/litgpt, config_hub/finetune): a training by LitGPT's own `litgpt finetune`, from its setup() on, of
random weights in bf16 on samples that are as long as max_seq_length. Prints the peak of allocated bytes as the publisher takes it: after fit(),
which validates and generates text too.

usage: litgpt_finetune.py --model Llama-3.2-1B --method lora --targets query,value --batch 8 --micro-batch 1
       litgpt_finetune.py --model tiny-llama-1.1b --method full --batch 32 --micro-batch 4
"""

import argparse
import importlib
import inspect
import json
import os
import pathlib
import sys
import tempfile
from unittest import mock

import torch

import litgpt_like_case
import trainer

# LitGPT imports it for its command line, which is not used here.
sys.modules["jsonargparse"] = mock.MagicMock()

STEPS, INTERVAL = 3, 2  # validates and generates text after the second step; theirs does every 25 or 100
TARGETS = ("query", "key", "value", "projection", "mlp", "head")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a name of litgpt.config")
    parser.add_argument("--method", required=True, choices=["full", "lora"])
    parser.add_argument("--targets", default="", help=f"what has LoRA, of {','.join(TARGETS)}")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--quantize", help="such as bnb.nf4")
    parser.add_argument("--batch", type=int, required=True, help="samples a step")
    parser.add_argument("--micro-batch", type=int, required=True)
    parser.add_argument("--length", type=lambda text: [int(each) for each in text.split(",")], default=[512], metavar="TOKENS,...",
                        help="of the samples of a micro-batch, in turn: 512,256 makes every second half as long")  # fmt: skip
    parser.add_argument("--ranks", type=int, default=1, help="processes under FSDP, each with a card")
    parser.add_argument("--like-case", type=lambda names: names.split(","), default=[], metavar="NAME,...",
                        help=f"what is done as by our case, of {','.join(litgpt_like_case.CHANGES)}")  # fmt: skip
    return parser.parse_args()


class Tokenizer:
    eos_id = 0

    def __init__(self, folder):
        pass

    def encode(self, text, device=None, **options):
        return torch.randint(1, 1000, (len(text) // 4,), device=device)

    def decode(self, tokens):
        return f"{len(tokens)} tokens"


def data_of(given, vocabulary):
    """A data module of LitGPT's, of made-up samples."""
    from litgpt.data import DataModule, get_sft_collate_fn
    from litgpt.prompts import Alpaca
    from torch.utils.data import DataLoader

    class Data(DataModule):
        prompt_style = Alpaca()

        def connect(self, tokenizer=None, batch_size=1, max_seq_length=None):
            self.batch_size, self.collate = batch_size, get_sft_collate_fn(max_seq_length=max_seq_length, ignore_index=-100)

        def loader(self, count):
            lengths = [given.length[number // self.batch_size % len(given.length)] for number in range(count)]
            rows = [torch.randint(vocabulary, (length,)) for length in lengths]
            return DataLoader([{"input_ids": row, "labels": row.clone()} for row in rows], batch_size=self.batch_size, collate_fn=self.collate)

        def train_dataloader(self):
            return self.loader(given.batch * STEPS)

        def val_dataloader(self):
            return self.loader(2 * given.micro_batch)

    return Data()


def known(function, options):
    """Those options that this release has."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in names}


def settings(given, config):
    """setup()'s arguments, as the YAML file has them."""
    from litgpt.args import EvalArgs, TrainArgs

    train = {"save_interval": None, "log_interval": 1, "global_batch_size": given.batch, "micro_batch_size": given.micro_batch,
             "lr_warmup_steps": 1, "epochs": 1, "max_steps": STEPS, "max_seq_length": max(given.length)}  # fmt: skip
    adamw = {"class_path": "torch.optim.AdamW", "init_args": {"lr": 2e-4, "weight_decay": 0.0, "betas": [0.9, 0.95]}}
    lora = {f"lora_{name}": name in given.targets.split(",") for name in TARGETS}
    return {"precision": "bf16-true", "quantize": given.quantize, "devices": given.ranks, "data": data_of(given, config.vocab_size),
            "train": TrainArgs(**train), "eval": EvalArgs(interval=INTERVAL, max_new_tokens=4, max_iters=100), "optimizer": adamw,
            "lora_r": given.rank, "lora_alpha": 16, "lora_dropout": given.dropout, **lora}  # fmt: skip


def made_up(next_token):
    """The model's own step of generation, whose token is then replaced: whether it ends a text must not depend on values that nobody has."""

    def function(*args, **options):
        return torch.ones_like(next_token(*args, **options))

    return function


class Trained(Exception):
    """After fit(): what follows takes no part in the figure."""


def stand_in(program, model):
    """Nothing is read from a checkpoint."""
    for name in ("check_valid_checkpoint_dir", "load_checkpoint", "extend_checkpoint_dir", "auto_download_checkpoint", "check_nvlink_connectivity"):
        if hasattr(program, name):
            setattr(program, name, lambda *args, **options: pathlib.Path())
    program.Tokenizer = Tokenizer
    program.choose_logger = lambda *args, **options: None
    program.Config.from_file = classmethod(lambda cls, path, **options: cls.from_name(model, **options))
    generation = importlib.import_module("litgpt.generate.base")
    generation.next_token = made_up(generation.next_token)


def quantizing():
    """lightning asks whether all packages are installed that torch, beside bitsandbytes, names: those of CUDA are not needed here. bitsandbytes
    0.42.0 has libraries up to CUDA 12.3, and asks no further than which one to load."""
    os.environ["BNB_CUDA_VERSION"] = "121"
    sys.modules["lightning.fabric.plugins.precision.bitsandbytes"]._BITSANDBYTES_AVAILABLE = True


def watch(program, phases):
    import lightning
    from lightning.fabric.wrappers import _FabricOptimizer

    phases.watch(lightning.Fabric, "backward", "forward", "backward")
    phases.watch(_FabricOptimizer, "step", "backward", "optimizer_step")
    phases.watch(program, "validate", "build", "evaluation")
    phases.watch(program, "generate_example", "evaluation", "evaluation")
    fit = program.fit

    def fit_only(*args, **options):
        fit(*args, **options)
        raise Trained

    program.fit = fit_only


def main():
    given = arguments()
    if given.ranks > 1 and "RANK" not in os.environ:
        trainer.launch(given.ranks, OMP_NUM_THREADS="1")
    program = importlib.import_module(f"litgpt.finetune.{given.method}")
    phases = trainer.Phases()
    stand_in(program, given.model)
    if given.like_case:
        chunks = max(given.length) // litgpt_like_case.CHUNK * (given.micro_batch if given.method == "full" else 1)
        litgpt_like_case.install(given.like_case, program, given.batch // given.micro_batch, chunks, STEPS)
    watch(program, phases)
    if given.quantize:
        quantizing()
    with tempfile.TemporaryDirectory() as folder:
        options = settings(given, program.Config.from_name(given.model))
        try:
            program.setup(**known(program.setup, {"checkpoint_dir": pathlib.Path(folder), "out_dir": pathlib.Path(folder), **options}))
        except Trained:
            pass
    if int(os.environ.get("RANK", 0)) == 0:
        print(json.dumps({"bytes": torch.cuda.max_memory_allocated(), "phase": phases.of_peak}), flush=True)


main()
