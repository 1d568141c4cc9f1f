"""https://arxiv.org/abs/2305.14314 with the layout and the operators of torchao's NF4Tensor (to_nf4 and linear_nf4 of
torchao/dtypes/nf4tensor.py), which torchtune trains with. torchao is not among the oracle's packages: what follows says the same.
peft takes a weight whose class is torchao's for one of torchao's."""

import torch

STACKS = ["qlora+lora", "qlora,double_quant=false+lora,targets=mlp", "qlora+lora+checkpointing", "qlora+lora+checkpointing+fused-in-backward",
          "qlora+dora"]  # fmt: skip
BFLOAT16_STACKS = ["qlora+lora", "qlora+lora+checkpointing+fused-in-backward"]

# As transformers, with bitsandbytes, and torchtune load quantised models: what is not quantised goes to the device, then each weight in turn,
# and only its quantised form stays there.
BUILDS_ON_HOST = True

BLOCK, SCALERS = 64, 256
CODEBOOK = [-1.0000, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0000,
            0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0000]  # fmt: skip


class Nf4(torch.nn.Module):
    __module__ = "torchao.dtypes.nf4tensor"

    @torch.no_grad()
    def __init__(self, weight, double):
        super().__init__()
        self.shape, self.dtype, self.device = weight.shape, weight.dtype, weight.device
        nf4 = torch.tensor(CODEBOOK, dtype=self.dtype, device=self.device)
        blocks = weight.reshape(-1, BLOCK)
        scalers = blocks.abs().max(dim=1).values
        index = (((blocks / scalers.unsqueeze(-1)).unsqueeze(-1) - nf4).abs().min(dim=-1).indices).to(torch.uint8).flatten()
        self.register_buffer("quantized_data", index[::2] << 4 | index[1::2])
        self.register_buffer("quantized_scalers", scalers.float())
        self.register_buffer("nf4", nf4)
        self.double = double
        if double:
            self.quantise_scalers(scalers)

    def quantise_scalers(self, scalers):
        mean = scalers.mean()
        # torchao's caller chooses a divisor of their number.
        self.group = min(SCALERS, len(scalers))
        groups = (scalers - mean).view(-1, self.group)
        factor = 256 / (2 * groups.abs().max(dim=1).values)
        self.quantized_scalers = (groups * factor.unsqueeze(-1)).round().clamp(-128, 127).flatten().to(torch.int8)
        self.register_buffer("quantization_factor", factor)
        self.register_buffer("scaler_mean", mean)

    def scalers(self):
        if not self.double:
            return self.quantized_scalers.to(self.dtype)
        groups = self.quantized_scalers.view(-1, self.group)
        return (groups / self.quantization_factor.unsqueeze(-1)).flatten().to(self.dtype) + self.scaler_mean

    def dequantize(self):
        first_index = (self.quantized_data >> 4).to(torch.long)
        second_index = (self.quantized_data & 0b1111).to(torch.long)
        first, second = self.nf4[first_index], self.nf4[second_index]
        scalers = self.scalers()
        repeated = scalers.unsqueeze(-1).expand(len(scalers), BLOCK // 2)
        scaled_first = first * repeated.flatten()
        scaled_second = second * repeated.flatten()
        return torch.stack([scaled_first, scaled_second], dim=-1).reshape(self.shape)


class LinearNf4(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, *tensors):
        ctx.save_for_backward(*tensors)
        ctx.weight = weight
        return torch.nn.functional.linear(x, weight.dequantize().to(x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        ctx.saved_tensors  # checkpointing runs the block again to have them
        return gradient @ ctx.weight.dequantize().to(gradient.dtype), *[None] * (1 + len(ctx.needs_input_grad[2:]))


class Nf4Linear(torch.nn.Linear):
    def quantise(self, double, device):
        weight = self.weight.to(device)
        if hasattr(self, "nx"):
            # A Conv1D. As bitsandbytes replaces it: a linear layer with the weight's transpose.
            weight, self.in_features, self.out_features = weight.t(), self.nx, self.nf
        del self.weight
        self.weight = Nf4(weight, double)
        return self

    def forward(self, x):
        product = LinearNf4.apply(x, self.weight, *self.weight.buffers())
        return product if self.bias is None else product + self.bias


def prepare(model, options, subject):
    """Every linear layer that `subject.lora_targets` knows but the output head."""
    patterns = [pattern for part, found in subject.lora_targets.items() if part not in ("auto", "output") for pattern in found]
    import re

    from transformers.pytorch_utils import Conv1D

    found = [module for name, module in model.named_modules()
             if isinstance(module, (torch.nn.Linear, Conv1D)) and re.fullmatch(rf".*({'|'.join(patterns)})", name)]  # fmt: skip
    quantised = {id(module.weight) for module in found}
    for tensor in [*model.parameters(), *model.buffers()]:
        if id(tensor) not in quantised:
            tensor.data = tensor.data.to(subject.args.device)
    for module in found:
        module.__class__ = Nf4Linear
        module.quantise(options.get("double_quant", "true") == "true", subject.args.device)
    return model
