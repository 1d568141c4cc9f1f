"""https://docs.pytorch.org/torchtune/stable/generated/torchtune.modules.loss.CEWithChunkedOutputLoss.html, with each part's logits made when they
are needed."""

import torch.nn.functional as F

FAMILIES = ("decoder",)
STACKS = ["chunked-cross-entropy", "chunked-cross-entropy,chunks=3+fused-in-backward", "lora+checkpointing+chunked-cross-entropy"]
UNTIED_STACKS = ["lora,targets=output+chunked-cross-entropy"]
BFLOAT16_STACKS = ["chunked-cross-entropy"]
IGNORED = -100


def install(step, options):
    chunks = int(options.get("chunks", 8))
    language_model = step.subject.base

    def forward(model, batch):
        hidden = language_model.model(batch["input_ids"], use_cache=False).last_hidden_state
        targets = shifted(batch["labels"])
        counting = (targets != IGNORED).sum()
        first, *others = zip(hidden.tensor_split(chunks, dim=1), targets.tensor_split(chunks, dim=1), strict=True)
        total = summed_loss(language_model.lm_head, *first)
        for part in others:
            total = total + summed_loss(language_model.lm_head, *part)
        return hidden, total / counting

    step.forward = forward


def shifted(labels):
    """Tokens before position t predict the label at t."""
    return F.pad(labels, (0, 1), value=IGNORED)[..., 1:].contiguous()


def summed_loss(lm_head, hidden, targets):
    logits = lm_head(hidden).float()
    return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=IGNORED, reduction="sum")
