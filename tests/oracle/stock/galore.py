"""https://arxiv.org/abs/2403.03507, algorithm 2, with the projection of the authors' galore_torch (proj_type "std"). Theirs is an Adam
of its own; here any optimizer steps on a matrix of low rank that starts at zero, and its step is projected back."""

import torch

RANK = "rank=4"
STACKS = [f"galore,{RANK}", f"galore,{RANK},update_gap=2,scale=1", f"checkpointing+galore,{RANK}+fused-in-backward"]
BFLOAT16_STACKS = [f"galore,{RANK}", f"galore,{RANK}+master-weights"]


class LowRank:
    def __init__(self, parameters, projected, make_optimizer, rank, gap, scale):
        self.param_groups, self.rank, self.gap, self.scale = [{"params": parameters}], rank, gap, scale
        # What another optimizer works on in a parameter's place says which it stands for.
        self.stand_ins = {p: torch.nn.Parameter(p.new_empty(0)) for p in parameters if getattr(p, "stands_for", p) in projected}
        self.vectors, self.number = {}, 0
        self.optimizer = make_optimizer([self.stand_ins.get(p, p) for p in parameters])

    def fit(self, gradient):
        left, _, right = torch.linalg.svd(gradient.float(), full_matrices=False)
        leading = left[:, : self.rank] if gradient.shape[0] < gradient.shape[1] else right[: self.rank]
        return leading.to(gradient.dtype, copy=True, memory_format=torch.contiguous_format)

    @torch.no_grad()
    def step(self):
        for parameter, stand_in in self.stand_ins.items():
            gradient, parameter.grad = parameter.grad, None
            if self.number % self.gap == 0:
                self.vectors[parameter] = self.fit(gradient)
            vectors = self.vectors[parameter].t()
            low_rank = vectors @ gradient if gradient.shape[0] < gradient.shape[1] else gradient @ vectors
            del gradient
            stand_in.data = torch.zeros_like(low_rank)
            stand_in.grad = low_rank
            del low_rank
        self.number += 1
        self.optimizer.step()
        for parameter, stand_in in self.stand_ins.items():
            vectors = self.vectors[parameter]
            change = vectors @ stand_in if parameter.shape[0] < parameter.shape[1] else stand_in @ vectors
            parameter.add_(change, alpha=self.scale)
            del change
            stand_in.grad, stand_in.data = None, parameter.new_empty(0)

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None


def install(step, options):
    rank, gap, scale = int(options.get("rank", 128)), int(options.get("update_gap", 200)), float(options.get("scale", 0.25))
    matrices = [p for block in step.subject.blocks(step.subject.base) for p in block.parameters() if p.dim() == 2]
    projected = {p for p in matrices if min(p.shape) > rank}
    make_optimizer = step.make_optimizer
    step.make_optimizer = lambda parameters: LowRank(parameters, projected, make_optimizer, rank, gap, scale)
