"""Stock Hugging Face decoders (Qwen2, Llama, Mistral, Granite) from their official configurations, random weights: loss = the model's
own, AdamW.

  decoder.py --model qwen2.5-0.5b --seq 256 --strategy lora+checkpointing
  decoder.py --model llama-3.2-1b --tiny --randomise --save-weights w.safetensors --save r.safetensors
"""

import torch
from transformers import (
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

import training


CONFIGS = {
    Qwen2ForCausalLM: Qwen2Config,
    LlamaForCausalLM: LlamaConfig,
    MistralForCausalLM: MistralConfig,
    GraniteForCausalLM: GraniteConfig,
}


def qwen(hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, max_position_embeddings, kv_heads=2,
         vocab_size=151936, tied=True):  # fmt: skip
    return Qwen2ForCausalLM, dict(
        vocab_size=vocab_size, hidden_size=hidden_size, intermediate_size=intermediate_size, num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads, num_key_value_heads=kv_heads, max_position_embeddings=max_position_embeddings,
        rms_norm_eps=1e-6, tie_word_embeddings=tied, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
    )  # fmt: skip


def plain_llama(vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, kv_heads, positions, rope_theta):
    return LlamaForCausalLM, dict(
        vocab_size=vocab_size, hidden_size=hidden_size, intermediate_size=intermediate_size, num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads, num_key_value_heads=kv_heads, max_position_embeddings=positions, rms_norm_eps=1e-5,
        tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": rope_theta},
    )  # fmt: skip


def llama(hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, head_dim, tied, factor):
    return LlamaForCausalLM, dict(
        vocab_size=128256, hidden_size=hidden_size, intermediate_size=intermediate_size, num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads, num_key_value_heads=8, head_dim=head_dim, max_position_embeddings=131072,
        rms_norm_eps=1e-5, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": factor, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
    )  # fmt: skip


def mistral(vocab_size, sliding_window, rope_theta):
    return MistralForCausalLM, dict(
        vocab_size=vocab_size, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=32768, rms_norm_eps=1e-5, tie_word_embeddings=False,
        sliding_window=sliding_window, rope_parameters={"rope_type": "default", "rope_theta": rope_theta},
    )  # fmt: skip


# Table 4 of arXiv 2408.13359.
POWERLM = GraniteForCausalLM, dict(
    vocab_size=49152, hidden_size=2304, intermediate_size=9216, num_hidden_layers=40, num_attention_heads=36, num_key_value_heads=36,
    max_position_embeddings=4096, rms_norm_eps=1e-5, tie_word_embeddings=True, embedding_multiplier=12.0, residual_multiplier=0.22,
    attention_multiplier=1 / 64, logits_scaling=8.0, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
)  # fmt: skip

MODELS = {
    "qwen2.5-0.5b": qwen(896, 4864, 24, 14, 32768),
    "qwen2.5-1.5b": qwen(1536, 8960, 28, 12, 131072),
    "qwen2.5-3b": qwen(2048, 11008, 36, 16, 32768),
    "qwen2.5-7b": qwen(3584, 18944, 28, 28, 131072, kv_heads=4, vocab_size=152064, tied=False),
    "tinyllama-1.1b": plain_llama(32000, 2048, 5632, 22, 32, 4, 2048, 10000.0),
    "llama-2-7b": plain_llama(32000, 4096, 11008, 32, 32, 32, 4096, 10000.0),
    "llama-2-13b": plain_llama(32000, 5120, 13824, 40, 40, 40, 4096, 10000.0),
    "llama-3-8b": plain_llama(128256, 4096, 14336, 32, 32, 8, 8192, 500000.0),
    "llama-3.2-1b": llama(2048, 8192, 16, 32, 64, True, 32.0),
    "llama-3.2-3b": llama(3072, 8192, 28, 24, 128, True, 32.0),
    "llama-3.1-8b": llama(4096, 14336, 32, 32, 128, False, 8.0),
    "llama-3.1-70b": llama(8192, 28672, 80, 64, 128, False, 8.0),
    "llama-3.1-405b": llama(16384, 53248, 126, 128, 128, False, 8.0),
    "mistral-7b-v0.1": mistral(32000, 4096, 10000.0),
    "mistral-7b-v0.3": mistral(32768, None, 1000000.0),
    "powerlm-3b": POWERLM,
}
TINY = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
OVERRIDES = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "mlp-width": "intermediate_size",
    "heads": "num_attention_heads",
    "kv-heads": "num_key_value_heads",
    "head-dim": "head_dim",
    "vocabulary": "vocab_size",
}


class Decoder(training.Subject):
    optimizer_class = torch.optim.AdamW
    optimizer_options = {"lr": 1e-3}

    def __init__(self, args, model_class, config):
        self.args, self.model_class, self.config = args, model_class, config
        self.lora_targets = {
            "auto": "q_proj:k_proj:v_proj:output_proj",
            "q_proj": ["q_proj"],
            "k_proj": ["k_proj"],
            "v_proj": ["v_proj"],
            "output_proj": ["o_proj"],
            "mlp": ["gate_proj", "up_proj", "down_proj"],
            "output": None if config["tie_word_embeddings"] else ["lm_head"],
        }

    def build(self):
        with self.defaults():
            return self.model_class(CONFIGS[self.model_class](**self.config, attn_implementation="sdpa"))

    def batch(self):
        shape = (self.args.batch, self.args.seq)
        tokens = torch.randint(self.config["vocab_size"], shape, device=self.args.device)
        return {"input_ids": tokens, "labels": tokens.clone()}

    def blocks(self, model):
        return list(model.model.layers)

    def checkpoint(self, model, blocks, every, **extra):
        model.gradient_checkpointing_enable({"use_reentrant": False, **extra})
        # transformers makes the embeddings' output require a gradient, for reentrant checkpointing under adapters. This one needs
        # none; the first block's last gradient is spared, the peak is the same.
        model.disable_input_require_grads()
        for index, block in enumerate(blocks):
            block.gradient_checkpointing = index % every == 0

    def forward(self, model, batch):
        result = model(batch["input_ids"], labels=batch["labels"], use_cache=False)
        return result.logits, result.loss


def main():
    parser = training.arguments(__doc__)
    parser.add_argument("--model", default="qwen2.5-0.5b", choices=MODELS)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--tiny", action="store_true", help=f"instead of the model's own sizes: {TINY}")
    parser.add_argument("--tied", choices=["yes", "no"], help="overrides whether the output head is the embedding's weight")
    args, config = training.parse(parser, OVERRIDES)
    model_class, official = MODELS[args.model]
    config = official | (TINY if args.tiny else {}) | config
    # The width of a head follows from the others unless it is asked for.
    if args.tiny or args.width or args.heads:
        config["head_dim"] = args.head_dim or config["hidden_size"] // config["num_attention_heads"]
    if args.tied:
        config["tie_word_embeddings"] = args.tied == "yes"
    facts = {"model": args.model, "sequence_length": args.seq, "config": config}
    training.main(Decoder(args, model_class, config), args, **facts)


if __name__ == "__main__":
    main()
