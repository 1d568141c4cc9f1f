"""Stock Hugging Face GPT-2 from its official configurations, random weights: loss = the model's own, AdamW.

  gpt2.py --model gpt2 --seq 256 --strategy lora+checkpointing
  gpt2.py --model gpt2-xl --tiny --dropout 0 --randomise --save-weights w.safetensors --save r.safetensors
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import decoder
import training


def gpt2(n_embd, n_layer, n_head):
    return dict(vocab_size=50257, n_positions=1024, n_embd=n_embd, n_layer=n_layer, n_head=n_head, n_inner=None)


MODELS = {
    "gpt2": gpt2(768, 12, 12),
    "gpt2-medium": gpt2(1024, 24, 16),
    "gpt2-large": gpt2(1280, 36, 20),
    "gpt2-xl": gpt2(1600, 48, 25),
}
TINY = dict(vocab_size=97, n_positions=64, n_embd=32, n_layer=2, n_head=4, n_inner=48)
OVERRIDES = {
    "layers": "n_layer",
    "width": "n_embd",
    "mlp-width": "n_inner",
    "heads": "n_head",
    "positions": "n_positions",
    "vocabulary": "vocab_size",
}


class Gpt2(decoder.Decoder):
    # peft finds out by itself that a layer keeps its weight transposed, and sets fan_in_fan_out.
    lora_targets = {
        "auto": "qkv_proj:output_proj",
        "qkv_proj": [r"attn\.c_attn"],
        "output_proj": [r"attn\.c_proj"],
        "mlp": [r"mlp\.c_fc", r"mlp\.c_proj"],
        "output": None,
    }

    def __init__(self, args, config):
        self.args, self.config = args, config

    def build(self):
        with self.defaults():
            return GPT2LMHeadModel(GPT2Config(**self.config, attn_implementation="sdpa"))

    def blocks(self, model):
        return list(model.transformer.h)


def main():
    parser = training.arguments(__doc__)
    parser.add_argument("--model", default="gpt2", choices=MODELS)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--tiny", action="store_true", help=f"instead of the model's own sizes: {TINY}")
    parser.add_argument("--dropout", type=float, default=0.1)
    args, config = training.parse(parser, OVERRIDES)
    dropout = {name: args.dropout for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")}
    config = MODELS[args.model] | (TINY if args.tiny else {}) | config | dropout
    facts = {"model": args.model, "sequence_length": args.seq, "config": config}
    training.main(Gpt2(args, config), args, **facts)


if __name__ == "__main__":
    main()
