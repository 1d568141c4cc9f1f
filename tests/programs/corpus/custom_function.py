"""Functions with a backward of their own: a straight-through estimator, a gradient that is reversed, recomputed activations.

Expected: ends well, exact
"""

import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return gradient * (s + x * s * (1 - s))


model = torch.nn.Linear(128, 128).cuda()
x = torch.randn(64, 128, device="cuda", requires_grad=True)
for step in range(2):
    Reverse.apply(Swish.apply(Round.apply(model(x) * 8)), 0.5).square().mean().backward()
assert x.grad.shape == x.shape
