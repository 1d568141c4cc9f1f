"""A decoder with experts in stock PyTorch, what examples/moe follows: transformers 4.57's MixtralSparseMoeBlock (a loop over the
experts) and load_balancing_loss_func, in a decoder of torch.nn's layers; loss of the next token and the router's, AdamW.

  moe.py --tiny --randomise --save-weights w.safetensors --save r.safetensors
"""

import torch
import torch.nn.functional as F
from torch import nn
from transformers.loss.loss_utils import ForCausalLMLoss

import training

BALANCE = 0.02


class Expert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = nn.Linear(c["width"], c["mlp"], bias=False)
        self.down = nn.Linear(c["mlp"], c["width"], bias=False)

    def forward(self, x):
        x = self.up(x)
        x = F.silu(x)
        return self.down(x)


class Experts(nn.ModuleDict):
    def __init__(self, c):
        super().__init__()
        self.top_k = c["top_k"]
        self.gate = nn.Linear(c["width"], c["experts"], bias=False)
        self.update({str(i): Expert(c) for i in range(c["experts"])})

    def forward(self, hidden_states):
        x = hidden_states.view(-1, hidden_states.shape[-1])
        router_logits = self.gate(x)
        weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        weights, chosen = torch.topk(weights, self.top_k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        weights = weights.to(x.dtype)
        experts = [module for name, module in self.items() if name != "gate"]
        mask = F.one_hot(chosen, num_classes=len(experts)).permute(2, 0, 1)
        output = torch.zeros_like(x)
        for index, expert in enumerate(experts):
            token, place = torch.where(mask[index])
            some = x[token]
            some = expert(some)
            some = some * weights[token, place].unsqueeze(-1)
            output.index_add_(0, token, some)
        return output.view_as(hidden_states), router_logits


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c["heads"]
        self.qkv_proj = nn.Linear(c["width"], 3 * c["width"], bias=False)
        self.output_proj = nn.Linear(c["width"], c["width"], bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv_proj(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, width)
        return self.output_proj(y)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm_1 = nn.LayerNorm(c["width"])
        self.attention = Attention(c)
        self.norm_2 = nn.LayerNorm(c["width"])
        self.experts = Experts(c)

    def forward(self, x):
        y = self.norm_1(x)
        y = self.attention(y)
        x = x + y
        y = self.norm_2(x)
        y, router_logits = self.experts(y)
        return x + y, router_logits


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c["vocabulary"], c["width"])
        for index in range(c["layers"]):
            self.add_module(f"block_{index}", Block(c))
        self.norm = nn.LayerNorm(c["width"])
        self.lm_head = nn.Linear(c["width"], c["vocabulary"], bias=False)

    def blocks(self):
        return [module for name, module in self.named_children() if name.startswith("block_")]

    def forward(self, tokens):
        x, routers = self.embed(tokens), []
        for block in self.blocks():
            x, router_logits = block(x)
            routers.append(router_logits)
        return self.norm(x), routers


def load_balancing_loss(routers, top_k):
    experts = routers[0].shape[-1]
    weights = F.softmax(torch.cat(routers, dim=0), dim=-1)
    _, chosen = torch.topk(weights, top_k, dim=-1)
    mask = F.one_hot(chosen, experts)
    tokens_per_expert = torch.mean(mask.float(), dim=0)
    router_prob_per_expert = torch.mean(weights, dim=0)
    return torch.sum(tokens_per_expert * router_prob_per_expert.unsqueeze(0)) * experts


class Moe(training.Subject):
    optimizer_class = torch.optim.AdamW
    optimizer_options = {"lr": 1e-3}

    def __init__(self, args, config):
        self.args, self.config = args, config

    def build(self):
        with self.defaults():
            return Decoder(self.config)

    def batch(self):
        tokens = torch.randint(self.config["vocabulary"], (self.args.batch, self.args.seq), device=self.args.device)
        return {"input_ids": tokens, "labels": tokens.clone()}

    def blocks(self, model):
        return model.blocks()

    def forward(self, model, batch):
        hidden_states, routers = model(batch["input_ids"])
        logits = model.lm_head(hidden_states)
        del hidden_states
        loss = ForCausalLMLoss(logits, batch["labels"], self.config["vocabulary"])
        del logits
        loss = loss + load_balancing_loss(routers, self.config["top_k"]) * BALANCE
        return loss, loss


TINY = dict(layers=2, width=32, mlp=48, heads=4, experts=4, top_k=2, vocabulary=97)
OVERRIDES = {"layers": "layers", "width": "width", "mlp-width": "mlp", "heads": "heads", "experts": "experts", "top-k": "top_k",
             "vocabulary": "vocabulary"}  # fmt: skip


def main():
    parser = training.arguments(__doc__)
    parser.add_argument("--model", default="my-moe", choices=["my-moe"])
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--tiny", action="store_true", help=f"the sizes, the only ones: {TINY}")
    args, config = training.parse(parser, OVERRIDES)
    config = TINY | config
    training.main(Moe(args, config), args, model=args.model, sequence_length=args.seq, config=config)


if __name__ == "__main__":
    main()
