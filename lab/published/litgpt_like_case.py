"""What our cases of LitGPT's config hub do otherwise than LitGPT, one operator at a time, for litgpt_finetune.py --like-case: each name of CHANGES
replaces one of LitGPT's operators by what our models and strategies have in its place (models/decoder, plugins/chunked_cross_entropy). LoRALinear and
the MLP keep what ours do, and stay."""

import functools

import torch
from torch.nn import functional

CHANGES = ("loop", "loss", "norm", "rope", "qkv", "gqa")
CHUNK = 128


def install(changed, program, micro_batches, chunks, steps):
    """Replaces in LitGPT's modules what `changed` names. `program` is litgpt.finetune.full or .lora."""
    import litgpt.model

    if "norm" in changed:
        litgpt.model.RMSNorm.forward = norm
    if "rope" in changed:
        litgpt.model.GPT.rope_cache = tables_by(litgpt.model.GPT.rope_cache)
        litgpt.model.apply_rope = rotated
    if {"qkv", "gqa"} & set(changed):
        Attention.install(litgpt.model.CausalSelfAttention, changed)
    if "qkv" in changed:
        build = program.GPT.__init__

        def built(self, config):
            build(self, config)
            for block in self.transformer.h:
                split_layers(block.attn, config)

        program.GPT.__init__ = built
    if "loop" in changed:
        program.fit = training(changed, program, micro_batches, chunks, steps)


def norm(self, x):
    """The weight is multiplied in the model's precision, after the rest in fp32."""
    wide = x.float()
    variance = wide.pow(2).mean(-1, keepdim=True)
    wide = wide * torch.rsqrt(variance + self.eps)
    return self.weight * wide.to(x.dtype)


def tables_by(theirs):
    """In the model's precision, also after max_seq_length is set, and beside them the frequencies, twice, as transformers keeps them."""

    def function(self, device=None):
        cos, sin = theirs(self, device)
        self.frequencies = [torch.ones(cos.shape[-1] // 2, dtype=torch.float32, device=device) for _ in range(2)]
        return cos.bfloat16(), sin.bfloat16()

    return function


def rotated(x, cos, sin):
    """In the model's precision, which the tables have."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return x * cos + torch.cat((-second, first), -1) * sin


def split_layers(attention, config):
    """Queries, keys and values from layers of their own, in place of one for all."""
    whole = attention.attn
    lora = hasattr(whole, "linear")
    dense = whole.linear if lora else whole
    widths = [heads * config.head_size for heads in (config.n_head, config.n_query_groups, config.n_query_groups)]
    if lora:
        import litgpt.lora

        options = {"lora_alpha": config.lora_alpha, "lora_dropout": config.lora_dropout, "bias": dense.bias is not None}
        ranks = [config.lora_r if on else 0 for on in (config.lora_query, config.lora_key, config.lora_value)]
        layers = [litgpt.lora.LoRALinear(dense.in_features, width, r=rank, **options) for width, rank in zip(widths, ranks)]
    else:
        layers = [torch.nn.Linear(dense.in_features, width, bias=dense.bias is not None) for width in widths]
    del attention.attn
    attention.q_proj, attention.k_proj, attention.v_proj = layers


class Attention:
    """LitGPT's CausalSelfAttention in training, with `qkv` and `gqa` changed or not."""

    @staticmethod
    def install(cls, changed):
        theirs = cls.forward

        def forward(self, x, cos, sin, mask=None, input_pos=None, *more):
            if input_pos is not None:
                return theirs(self, x, cos, sin, mask, input_pos, *more)
            batch, length, _ = x.shape
            heads = Attention.of_layers if "qkv" in changed else Attention.of_one_layer
            q, k, v = heads(self, x)
            if "gqa" not in changed and self.config.n_query_groups != self.config.n_head:
                k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
            import litgpt.model

            q_rotated = litgpt.model.apply_rope(q, cos, sin)
            k_rotated = litgpt.model.apply_rope(k, cos, sin)
            q, k = q_rotated, k_rotated
            del q_rotated, k_rotated
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.config.head_size**-0.5, enable_gqa="gqa" in changed)
            return self.proj(out.transpose(1, 2).reshape(batch, length, -1))

        cls.forward = forward

    @staticmethod
    def of_layers(self, x):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        return [layer(x).view(*x.shape[:2], -1, self.config.head_size).transpose(1, 2) for layer in layers]

    @staticmethod
    def of_one_layer(self, x):
        """By groups: some queries, a key and a value each."""
        config = self.config
        queries = config.n_head // config.n_query_groups
        grouped = self.attn(x).view(*x.shape[:2], config.n_query_groups, queries + 2, config.head_size).permute(0, 2, 3, 1, 4)
        return [each.reshape(x.shape[0], -1, x.shape[1], config.head_size) for each in grouped.split((queries, 1, 1), 2)]


def training(changed, program, micro_batches, chunks, steps):
    """The steps of fit() alone: no validation, no text, no metrics, and nothing of a micro-batch outlives it."""
    loss_of = functools.partial(chunked_loss, chunks=chunks) if "loss" in changed else program_loss(program)

    def fit(fabric, *args):
        model, optimizer = (args[0]["model"], args[0]["optimizer"]) if isinstance(args[0], dict) else args[:2]
        loader = next(each for each in args if hasattr(each, "dataset"))
        model.max_seq_length = len(loader.dataset[0]["input_ids"])
        tokens = torch.cat([batch["input_ids"] for _, batch in zip(range(micro_batches), loader)])
        labels = tokens.clone()
        for _ in range(steps):
            loss = step(fabric, model, list(zip(tokens.chunk(micro_batches), labels.chunk(micro_batches))), loss_of)
            optimizer.step()
            optimizer.zero_grad()
            del loss

    return fit


def step(fabric, model, micro_batches, loss_of):
    """-> the loss"""
    total = None
    for tokens, labels in micro_batches:
        loss = loss_of(model, tokens, labels)
        if len(micro_batches) > 1:
            loss = loss / len(micro_batches)
        fabric.backward(loss)
        total = loss.detach() if total is None else total.add_(loss.detach())
        del loss
    return total


def program_loss(program):
    """LitGPT's, as its fit() calls it."""
    chunked_head = program.__name__.endswith("lora")

    def function(model, tokens, labels):
        if not chunked_head:
            return program.chunked_cross_entropy(model(tokens)[..., :-1, :], labels[..., 1:])
        logits = model(tokens, lm_head_chunk_size=CHUNK)
        logits[-1] = logits[-1][..., :-1, :]
        return program.chunked_cross_entropy(logits, labels[..., 1:])

    return function


def chunked_loss(model, tokens, labels, chunks):
    """Logits of a chunk are made, widened and released before the next; Fabric, which widens all that a model returns, is passed by."""
    model = model.module
    head, model.lm_head = model.lm_head, torch.nn.Identity()
    hidden = model(tokens)
    model.lm_head = head
    targets = functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
    counting = targets.ne(-100).sum()
    total = None
    for part, wanted in zip(hidden.tensor_split(chunks, 1), targets.tensor_split(chunks, 1)):
        one = summed_loss(head, part, wanted)
        total = one if total is None else total + one
    return total / counting


def summed_loss(head, hidden, targets):
    logits = head(hidden).float()
    return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1), reduction="sum", ignore_index=-100)
