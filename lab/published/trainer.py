"""A training of fms-acceleration's benchmarks (github.com/foundation-model-stack/fms-acceleration, scripts/benchmarks) by stock transformers
and peft: what fms-hf-tuning's sft_trainer.py hands to Hugging Face's Trainer, on packed tokens. Prints the publisher's figure as the last line:
the peak of allocated bytes by the Trainer's own metrics, as benchmark.py adds them up.

usage: trainer.py --model powerlm-3b --method lora --batch 4
       trainer.py --model powerlm-3b --method lora --batch 2 --ranks 2
"""

import argparse
import json
import os
import sys
import tempfile

import torch

import flash_attention

# From the models' published configurations; that PowerLM's linear layers have biases follows from the bytes that the publisher has allocated
# after its trainings. Their files have at most `shard_bytes` each. `tokens` is what sft_trainer.py resizes the embeddings to, the tokenizer's
# length with the special tokens that it adds; `length` is the lesser of 4,096 and the tokenizer's model_max_length.
MODELS = {
    "santacoder": dict(
        kind="gpt_bigcode", tokens=49158, length=2048, shard_bytes=5 * 10**9,
        options=dict(vocab_size=49280, n_positions=2048, n_embd=2048, n_layer=24, n_head=16, n_inner=8192, multi_query=True,
                     activation_function="gelu_fast", attn_pdrop=0.1, resid_pdrop=0.1, embd_pdrop=0.1, bos_token_id=49152,
                     eos_token_id=49152),
    ),
    "mistral-7b": dict(
        kind="mistral", tokens=32001, length=4096, shard_bytes=10 * 10**9,
        options=dict(vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                     num_key_value_heads=8, max_position_embeddings=32768, rms_norm_eps=1e-5, sliding_window=4096, rope_theta=10000.0,
                     tie_word_embeddings=False),
    ),
    "powerlm-3b": dict(
        kind="granite", tokens=49152, length=4096, shard_bytes=5 * 10**9,
        options=dict(vocab_size=49152, hidden_size=2304, intermediate_size=9216, num_hidden_layers=40, num_attention_heads=36,
                     num_key_value_heads=36, max_position_embeddings=4096, rms_norm_eps=1e-5, tie_word_embeddings=True,
                     embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=1 / 64, logits_scaling=8.0,
                     attention_bias=True, mlp_bias=True),
    ),
    "llama-3-8b": dict(
        kind="llama", tokens=128258, length=4096, shard_bytes=5 * 10**9,
        options=dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                     num_key_value_heads=8, max_position_embeddings=8192, rms_norm_eps=1e-5, rope_theta=500000.0,
                     tie_word_embeddings=False),
    ),
}  # fmt: skip
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "c_attn"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--method", required=True, choices=["full", "lora"])
    parser.add_argument("--batch", type=int, required=True, help="packed sequences a rank and step")
    parser.add_argument("--mixed", action="store_true", help="TrainingArguments(bf16=True)")
    parser.add_argument("--bnb", choices=["accelerated", "baseline"], help="NF4 by bitsandbytes, prepared by the plugin or by trl and peft")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="configuration of the package fms_acceleration")
    parser.add_argument("--ranks", type=int, default=1, help="processes under FSDP, each with a card")
    parser.add_argument("--steps", type=int, default=3, help="the publisher's 100 take what the third does")
    return parser.parse_args()


# sample-configurations/*.yaml, without their comments. JSON is YAML. Of NF4 with Liger's loss, the file as it was committed with the figures asks for
# "fast_rsm_layernorm", which is nothing; its figures are those with the norm's kernel.
KERNELS = {"fast_loss": True, "fast_rms_layernorm": True, "fast_rope_embeddings": True}
LIGER = KERNELS | {"fast_loss": "fused_ce_liger"}
FUSED_LORA = {"base_layer": "bitsandbytes", "fused_lora": True}
FRAMEWORKS = {
    "foak-fast-kernels": {"training": {"fused_ops_and_kernels": KERNELS}},
    "foak-fast-kernels-liger": {"training": {"fused_ops_and_kernels": LIGER}},
    "accelerated-peft-bnb-foak": {"peft": {"quantization": {"fused_ops_and_kernels": FUSED_LORA | KERNELS}}},
    "accelerated-peft-bnb-foak-liger": {"peft": {"quantization": {"fused_ops_and_kernels": FUSED_LORA | LIGER}}},
}

# What `accelerate launch --config_file scripts/benchmarks/accelerate.yaml` sets.
FSDP = {
    "ACCELERATE_USE_FSDP": "true", "FSDP_SHARDING_STRATEGY": "1", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_BACKWARD_PREFETCH": "BACKWARD_PRE", "FSDP_FORWARD_PREFETCH": "false", "FSDP_OFFLOAD_PARAMS": "false",
    "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT", "FSDP_USE_ORIG_PARAMS": "true", "FSDP_SYNC_MODULE_STATES": "true",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true", "ACCELERATE_MIXED_PRECISION": "no",
}  # fmt: skip


def launch(ranks, **environment):
    """This program again, in every rank."""
    os.environ |= environment
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv])


def build(model):
    """On the CPU, as the publisher: the Trainer moves it. Without initial values, so that it takes no memory of the host."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_utils import no_init_weights

    config = AutoConfig.for_model(model["kind"], **model["options"] | {"vocab_size": model["tokens"]})
    with no_init_weights():
        built = AutoModelForCausalLM.from_config(config, attn_implementation="flash_attention_2", torch_dtype=torch.bfloat16)
    built.tie_weights()
    built.config.architectures = [built.__class__.__name__]
    return built


def checkpoint(model, folder):
    """Writes the model's files in the shards that it is published in: of zeros, which take no room."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(model["kind"], **model["options"] | {"vocab_size": model["tokens"]})
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16)
    config.architectures = [built.__class__.__name__]
    config.save_pretrained(folder)
    shards, room = [{}], 0
    for key, weight in built.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if room + weight.nbytes > model["shard_bytes"]:
            shards.append({})
            room = 0
        shards[-1][key] = weight
        room += weight.nbytes
    names = [f"model-{number:05}-of-{len(shards):05}.safetensors" for number in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards):
        write_zeros(os.path.join(folder, name), shard)
    index = {"metadata": {}, "weight_map": {key: name for name, shard in zip(names, shards) for key in shard}}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump(index, file)


def write_zeros(path, weights):
    """In the format of safetensors."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for key, weight in weights.items():
        header[key] = {"dtype": "BF16", "shape": list(weight.shape), "data_offsets": [end, end + weight.nbytes]}
        end += weight.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def nf4(storage):
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16,
                              bnb_4bit_quant_storage=storage)  # fmt: skip


def loaded(model):
    """In NF4 on the card, by from_pretrained: the order of the files is the order in which weights are quantized, and so where blocks lie."""
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        checkpoint(model, folder)
        return AutoModelForCausalLM.from_pretrained(folder, quantization_config=nf4(torch.uint8), torch_dtype=torch.bfloat16, device_map={"": 0},
                                                    attn_implementation="flash_attention_2")  # fmt: skip


def quantized(built):
    """For FSDP: every linear layer but the head in NF4, with quantized constants. Weights are on the host again, stored as the type that FSDP
    flattens; their constants stay."""
    from transformers.integrations import replace_with_bnb_linear

    config = nf4(torch.bfloat16)
    linear = {name: module for name, module in built.named_modules() if isinstance(module, torch.nn.Linear)}
    built = replace_with_bnb_linear(built, modules_to_not_convert=["lm_head"], quantization_config=config)
    for name, module in built.named_modules():
        if module.__class__.__name__ == "Linear4bit":
            weight = module.weight
            module.weight = weight.__class__(linear[name].weight.data, requires_grad=False, **weight.__dict__ | {"quant_storage": torch.bfloat16})
            module.bias = linear[name].bias
            module.weight = to_host(module.weight.cuda())
    built.is_loaded_in_4bit = True
    return built, config


def marked(built, config):
    """For the Trainer, which asks whether a quantized model can be trained."""
    from transformers.quantizers import AutoHfQuantizer
    from transformers.utils.quantization_config import QuantizationMethod

    built.is_quantized, built.quantization_method = True, QuantizationMethod.BITS_AND_BYTES
    built.hf_quantizer = AutoHfQuantizer.from_config(config)
    return built


def to_host(weight):
    """Without the copy, whose bytes would be resident."""
    return weight.__class__(torch.empty_like(weight.data, device="cpu"), requires_grad=False, **weight.__dict__)


def prepare_as_peft(built):
    """peft's prepare_model_for_kbit_training and then, once it has adapters, trl's peft_module_casting_to_bf16."""
    from peft import prepare_model_for_kbit_training

    return prepare_model_for_kbit_training(built, use_gradient_checkpointing=True)


def cast_as_trl(adapted):
    for name, module in adapted.named_modules():
        if isinstance(module, torch.nn.LayerNorm) or "norm" in name:
            module.to(torch.float32)
        elif any(part in name for part in ("lm_head", "embed_tokens", "wte", "wpe")) and hasattr(module, "weight"):
            if module.weight.dtype == torch.float32:
                module.to(torch.bfloat16)


def with_adapters(built, model, autocast):
    """As trl's SFTTrainer adds them."""
    from peft import LoraConfig, get_peft_model

    names = {name.rpartition(".")[2] for name, _ in built.named_modules()}
    built.enable_input_require_grads()
    targets = [name for name in TARGETS if name in names]
    options = LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=16, lora_dropout=0.1, target_modules=targets)
    return get_peft_model(built, options, autocast_adapter_dtype=autocast)


def framework_of(name, folder):
    # Its kernels were written for Triton 3.0, which let them read Python's globals.
    os.environ["TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"] = "1"
    from fms_acceleration import AccelerationFramework

    path = os.path.join(folder, "framework.yaml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"plugins": FRAMEWORKS[name]}, file)
    return AccelerationFramework(path)


def samples(model, count):
    tokens = torch.randint(model["tokens"], (count, model["length"]))
    return [{"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)} for row in tokens]


class Phases:
    """In which phase the peak so far was reached."""

    def __init__(self, peak=torch.cuda.max_memory_allocated):
        self.peak_now, self.peak, self.of_peak = peak, 0, "build"

    def end(self, phase):
        peak = self.peak_now()
        if peak > self.peak:
            self.peak, self.of_peak = peak, phase

    def watch(self, owner, name, before, during):
        function = getattr(owner, name)

        def watched(*args, **options):
            self.end(before)
            result = function(*args, **options)
            self.end(during)
            return result

        setattr(owner, name, watched)


def published_peak(metrics):
    """benchmark.py's extract_gpu_memory_metrics."""
    allocated, peaks = metrics["before_init_mem_gpu"], [metrics["before_init_mem_gpu"]]
    for stage in ("init", "train"):
        allocated += metrics[f"{stage}_mem_gpu_alloc_delta"]
        peaks.append(allocated + metrics[f"{stage}_mem_gpu_peaked_delta"])
    return max(peaks)


def prepared(args, model):
    """The model as sft_trainer.py hands it to the Trainer."""
    if args.bnb and args.ranks == 1:
        built = loaded(model)
    else:
        built = build(model)
        if args.bnb:
            built = marked(*quantized(built))
    # trl prepares a quantized model that is on the card, and leaves one that is to be sharded as it is.
    by_trl = args.bnb == "baseline" and args.ranks == 1
    if by_trl:
        built = prepare_as_peft(built)
    if args.method == "lora":
        built = with_adapters(built, model, autocast=by_trl or args.bnb != "baseline")
    if by_trl:
        cast_as_trl(built)
    return built


def trainer_of(built, args, model, folder, callback):
    from peft.utils.other import fsdp_auto_wrap_policy
    from transformers import Trainer, TrainingArguments, default_data_collator

    # scripts/benchmarks/defaults.yaml
    options = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=args.batch, max_steps=args.steps, learning_rate=2e-5, gradient_checkpointing=True,
        bf16=args.mixed, weight_decay=0.01, warmup_steps=10, adam_epsilon=1e-4, optim="adamw_torch", save_strategy="no",
        logging_steps=10, skip_memory_metrics=False, report_to=[], include_tokens_per_second=True,
    )  # fmt: skip
    data = samples(model, args.batch * args.steps * args.ranks)
    framework = framework_of(args.framework, folder) if args.framework else None
    if framework:
        framework.augmentation(built, options, modifiable_args=(None,))
    trainer = Trainer(built, options, data_collator=default_data_collator, train_dataset=data, callbacks=[callback])
    if args.ranks > 1 and args.method == "lora" and args.bnb != "accelerated":
        trainer.accelerator.state.fsdp_plugin.auto_wrap_policy = fsdp_auto_wrap_policy(built)
    for added in framework.get_callbacks_and_ready_for_train(built, trainer.accelerator) if framework else []:
        trainer.add_callback(added)
    return trainer


def main():
    args = arguments()
    if args.ranks > 1 and "RANK" not in os.environ:
        launch(args.ranks, **FSDP)
    flash_attention.install()
    from transformers import TrainerCallback

    model = MODELS[args.model]
    built = prepared(args, model)
    phases = Phases()

    class Watch(TrainerCallback):
        def on_train_begin(self, *_, optimizer, **__):
            phases.watch(trainer.accelerator, "backward", "forward", "backward")
            phases.watch(optimizer, "step", "optimizer_step", "optimizer_step")

    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(built, args, model, folder, Watch())
        metrics = trainer.train().metrics
    if trainer.is_world_process_zero():
        print(json.dumps({"bytes": published_peak(metrics), "phase": phases.of_peak}), flush=True)


if __name__ == "__main__":
    main()
