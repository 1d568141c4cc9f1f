"""https://arxiv.org/abs/2409.11321, after https://github.com/nikhilvyas/SOAP (soap.py): Adam in the eigenbases of Shampoo's preconditioners,
of vectors (`precondition_1d` is off there) as they are. The first step prepares these and updates nothing. Theirs takes new bases every
tenth step; here it is every second, so that a short run has some."""

import torch

FAMILIES = ("decoder", "gpt2")
STACKS = ["soap", "checkpointing+soap"]
BFLOAT16_STACKS = []
FREQUENCY, MOST = 2, 10000


class SOAP(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, betas=(0.95, 0.95), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad, self.state[p]
                if "step" not in state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(grad), torch.zeros_like(grad)
                    state["GG"] = [torch.zeros(size, size, device=grad.device) if p.dim() > 1 and size <= MOST else [] for size in grad.shape]
                    state["Q"] = None
                    self.update_preconditioner(grad, state, beta2)
                    continue
                grad_projected = project(grad, state)
                state["step"] += 1
                state["exp_avg"].mul_(beta1).add_(grad_projected, alpha=1.0 - beta1)
                state["exp_avg_sq"].mul_(beta2).add_(grad_projected.square(), alpha=1.0 - beta2)
                denom = state["exp_avg_sq"].sqrt().add_(group["eps"])
                bias1, bias2 = 1.0 - beta1 ** state["step"], 1.0 - beta2 ** state["step"]
                step_size = group["lr"] * bias2**0.5 / bias1
                norm_grad = project(state["exp_avg"] / denom, state, dimension=1)
                p.add_(norm_grad, alpha=-step_size)
                self.update_preconditioner(grad, state, beta2)

    def update_preconditioner(self, grad, state, beta):
        if state["Q"] is not None:
            state["exp_avg"] = project(state["exp_avg"], state, dimension=1)
        for index, preconditioner in enumerate(state["GG"]):
            if len(preconditioner) > 0:
                others = [other for other in range(grad.dim()) if other != index]
                preconditioner.lerp_(torch.tensordot(grad, grad, dims=[others, others]), 1 - beta)
        if state["Q"] is None:
            state["Q"] = [eigenbasis(preconditioner) for preconditioner in state["GG"]]
        if state["step"] > 0 and state["step"] % FREQUENCY == 0:
            state["Q"] = self.improved(state)
        if state["step"] > 0:
            state["exp_avg"] = project(state["exp_avg"], state)

    @staticmethod
    def improved(state):
        """One power iteration, and its QR decomposition."""
        found = []
        for index, (preconditioner, basis) in enumerate(zip(state["GG"], state["Q"])):
            if len(preconditioner) == 0:
                found.append([])
                continue
            eigenvalues = torch.diag(basis.T @ preconditioner @ basis)
            order = torch.argsort(eigenvalues, descending=True)
            state["exp_avg_sq"] = state["exp_avg_sq"].index_select(index, order)
            basis = basis[:, order]
            power_iteration = preconditioner @ basis
            found.append(torch.linalg.qr(power_iteration).Q)
        return found


def eigenbasis(preconditioner):
    if len(preconditioner) == 0:
        return []
    eye = torch.eye(preconditioner.shape[0], device=preconditioner.device)
    return torch.linalg.eigh(preconditioner + 1e-30 * eye).eigenvectors.flip([1])


def project(x, state, dimension=0):
    """Into the bases, and out of them with dimension 1: each dimension in turn, which goes last."""
    for basis in state["Q"]:
        if len(basis) > 0:
            x = torch.tensordot(x, basis, dims=[[0], [dimension]])
        else:
            x = x.permute([*range(1, x.dim()), 0])
    return x


def install(step, options):
    step.optimizer_class, step.optimizer_options = SOAP, {}
