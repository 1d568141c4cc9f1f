"""https://arxiv.org/abs/2410.10989: the loss and all gradients of the output head in forward, a few tokens at a time, as Liger-Kernel's
LigerFusedLinearCrossEntropyFunction orders them; its kernels need a card, so the equations are written with PyTorch's operators."""

import torch

from stock.chunked_cross_entropy import IGNORED, shifted

FAMILIES = ("decoder",)
STACKS = ["linear-cross-entropy", "linear-cross-entropy,chunk_tokens=7+fused-in-backward", "lora+checkpointing+linear-cross-entropy"]
BFLOAT16_STACKS = ["linear-cross-entropy"]


def install(step, options):
    asked = int(options.get("chunk_tokens", 0))
    language_model = step.subject.base

    def forward(model, batch):
        hidden = language_model.model(batch["input_ids"], use_cache=False).last_hidden_state
        weight = language_model.lm_head.weight
        targets = shifted(batch["labels"])
        return hidden, FusedLoss.apply(hidden, weight, targets, asked or as_liger(targets.numel(), *weight.shape))

    step.forward = forward


def as_liger(tokens, vocabulary, width):
    wanted = -(-tokens // -(-vocabulary // width))
    return 1 << (wanted - 1).bit_length()


class FusedLoss(torch.autograd.Function):
    @staticmethod
    def forward(context, hidden_states, weight, all_targets, chunk_tokens):
        hidden = hidden_states.reshape(-1, hidden_states.size(-1))
        targets = all_targets.reshape(-1)
        ignored = targets == IGNORED
        counting = ~ignored
        labels = targets.masked_fill(ignored, 0)
        shares = counting.float() / counting.sum()
        del ignored, counting

        loss = torch.zeros((), dtype=torch.float32, device=weight.device)
        of_weight = torch.zeros_like(weight) if context.needs_input_grad[1] else None
        of_hidden = torch.empty_like(hidden) if context.needs_input_grad[0] else None
        for start in range(0, len(hidden), chunk_tokens):
            part = slice(start, start + chunk_tokens)
            gradient = gradient_of_logits(hidden[part] @ weight.t(), labels[part, None], shares[part, None], loss)
            if of_hidden is not None:
                torch.mm(gradient, weight, out=of_hidden[part])
            if of_weight is not None:
                of_weight.addmm_(gradient.t(), hidden[part])
            del gradient
        context.save_for_backward(None if of_hidden is None else of_hidden.view_as(hidden_states), of_weight)
        return loss

    @staticmethod
    def backward(context, grad):
        of_hidden, of_weight = context.saved_tensors
        return *(None if one is None else one.mul_(grad) for one in (of_hidden, of_weight)), None, None


def gradient_of_logits(logits, labels, shares, loss):
    dtype = logits.dtype
    logits = logits.float()
    p = torch.log_softmax(logits, -1)
    del logits
    loss -= (p.gather(1, labels) * shares).sum()
    p.exp_()
    p.mul_(shares)
    p.scatter_add_(1, labels, -shares)
    return p.to(dtype)
