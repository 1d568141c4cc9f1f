"""Small programs whose sizes, branches and counts come from the host, run on the CPU and on a card, as functions of the device.

usage: peakbench emulate -- PYTHON values_cases.py KIND...     prints a JSON object {case: [on the CPU, on the card]}
"""

import ctypes
import io
import json
import math
import os
import sys

import torch
import torchvision

CASES, CUDNN = {}, {}
# By default it rounds, which is a condition: rounded_to_tf32 looks at that.
torch.backends.cudnn.allow_tf32 = False


def case(function):
    CASES[function.__name__] = function
    return function


def by_cudnn(function):
    """One whose kernels only the card has, some with a workspace."""
    CUDNN[function.__name__] = function
    return function


def seeded(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1))


@case
def in_place_and_views(device):
    x = torch.tensor([3, 4, 5], device=device)
    y = x * 2 + 1
    y[1] = 7
    y += x.flip(0)
    grid = torch.zeros(4, 4).to(device)
    grid[1:3, 1:3] = 5
    grid.t()[0] = 2
    grid.view(-1)[15] = 9
    return y.tolist(), grid.tolist()


@case
def several_views_of_one_tensor(device):
    """As the parameters of FSDP and of flat optimizers are: an operator on a list changes several of them."""
    flat = torch.arange(10).to(device)
    first, second, third = flat[:3], flat[3:5], flat[5:]
    torch._foreach_add_([first, second, third], [flat.new_ones(3), flat.new_ones(2) * 10, flat.new_ones(5) * 100])
    torch._foreach_mul_([third, first], 2)
    gathered = torch.empty(12, dtype=torch.int64, device=device)
    torch._foreach_copy_(list(gathered[2:10].split([3, 5])), [first, third])
    columns = torch.empty(2, 5, dtype=torch.int64, device=device)
    torch.split_with_sizes_copy(flat.view(2, 5), [2, 3], dim=1, out=[columns[:, :2], columns[:, 2:]])
    return flat.tolist(), gathered[2:10].tolist(), columns.tolist()


@case
def tensors_that_wrap_others(device):
    """What is called on a wrapper is called again on what it wraps: by vmap, and by a class of its own."""
    from torch.utils._python_dispatch import return_and_correct_aliasing
    from torch.utils._pytree import tree_map_only

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), options=None):
            of = lambda value: tree_map_only(Wrapper, lambda one: one.inner, value)
            result = tree_map_only(torch.Tensor, Wrapper, function(*of(arguments), **of(options or {})))
            return return_and_correct_aliasing(function, arguments, options or {}, result)

    inner = torch.arange(6).to(device)
    wrapped = Wrapper(inner)
    wrapped.add_(7)
    torch._foreach_mul_([wrapped], 3)
    rows = torch.arange(6).view(3, 2).to(device)
    torch.vmap(lambda row: row.mul_(2).add_(1))(rows)
    return inner.tolist(), (wrapped + 1).inner.tolist(), rows.tolist()


@case
def sizes_of_masks(device):
    x = torch.arange(20).to(device)
    return (x % 3 == 0).nonzero().shape[0], x[x > 11].tolist(), x.masked_select(x > 4).numel(), torch.where(x > 17)[0].tolist()


@case
def unique(device):
    x = torch.tensor([1, 1, 2, 5, 5, 1]).to(device)
    return x.unique().tolist(), torch.unique_consecutive(x).numel(), x.unique(return_counts=True)[1].tolist()


@case
def unique_along_a_dimension(device):
    x = torch.tensor([[1, 1, 2, 1], [3, 3, 4, 3], [1, 1, 2, 1]]).to(device)
    columns, rows = torch.unique(x, dim=1), torch.unique(x, dim=0)
    return columns.tolist(), rows.tolist(), torch.unique_consecutive(x, dim=-1).shape[1]


@case
def rows_of_2_mib(device):
    """Of integers that the host knows, all different but two."""
    row = torch.arange(1 << 18) * 7919 % (1 << 18)
    row[5] = row[77]
    x = row.to(device)
    made = {
        "kthvalue": torch.stack(x.kthvalue(1000)),
        "median": torch.stack(x.median(0)),
        "cummax": torch.stack(x.cummax(0))[:, -3:],
        "cummin": torch.stack(x.cummin(0))[:, -3:],
        "topk": torch.stack(x.topk(3)),
        "sort": x.sort()[0][::50000],
        "max": torch.stack(x.max(0)),
        "aminmax": torch.stack(x.aminmax(dim=0)),
        "unique": torch.tensor([x.unique().numel(), x.unique_consecutive().numel()]),
        "isin": torch.isin(x, x[:100]).sum(),
        "searchsorted": torch.searchsorted(x.sort()[0], x[:3]),
        "bincount": x.bincount()[:3],
    }
    return {name: tensor.tolist() for name, tensor in made.items()}


@case
def written_into_new_memory(device):
    order = torch.tensor([2, 0, 3, 1]).to(device)
    inverse = torch.empty_like(order).scatter_(0, order, torch.arange(4).to(device))
    sorted_by = torch.empty(4, dtype=torch.long, device=device)
    sorted_by[order] = order * 2
    return inverse.tolist(), sorted_by.tolist()


@case
def conjugates(device):
    x = torch.tensor([1 + 2j, 3 - 1j]).to(device)
    return (x.conj() * 2).imag.tolist(), torch.view_as_real(x.conj().resolve_conj()).tolist()


@case
def copies_of_conjugates(device):
    x = torch.tensor([1 + 2j, 3 - 1j]).to(device)
    copied, row, part = torch.empty_like(x), torch.zeros(2, 2, dtype=x.dtype, device=device), torch.empty(2, device=device)
    copied.copy_(x.conj())
    row[0] = x.conj()
    part.copy_(x.conj().imag)
    gradient = torch.view_as_real(x).clone()
    gradient.copy_(torch.view_as_real(x)._neg_view())
    return torch.view_as_real(copied).tolist(), torch.view_as_real(row).tolist(), part.tolist(), gradient.tolist()


@case
def large_integers(device):
    """Labels and masks from the host, more than a mebibyte of them."""
    labels, rows = torch.arange(400_000) * 7 % 11, torch.arange(32 * 8192).view(32, 8192) % 8192
    mask = rows < torch.arange(1, 33)[:, None] * 250
    labels, whole, mask = labels.to(device), rows.to(device), mask.to(device)
    ignored = labels.clone()
    ignored[labels > 8] = -100
    halves = torch.stack(labels.split(200_000))
    return ((ignored != -100).sum().item(), labels[labels == 3].shape[0], whole.ge(0).all().item(), mask.sum(-1).tolist(),
            mask.nonzero().shape[0], torch.cat([halves[1], halves[0]])[:3].tolist(), labels.bincount().tolist())


@case
def sparse(device):
    indices, values = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 1]]), torch.tensor([3.0, 4.0, 5.0, 6.0])
    x = torch.sparse_coo_tensor(indices.to(device), values.to(device), (2, 3), check_invariants=False).coalesce()
    changed = x.clone()
    changed._values().mul_(2)
    return x._nnz(), x.indices().tolist(), x.values().tolist(), x.to_dense().tolist(), changed.values().tolist()


@case
def sparse_gradients(device):
    embedding = torch.nn.Embedding(10, 2, sparse=True).to(device)
    embedding(torch.tensor([1, 4, 1, 9, 4]).to(device)).sum().backward()
    gradient = embedding.weight.grad.coalesce()
    return gradient._nnz(), gradient.indices().tolist(), gradient.values().tolist()


@case
def nms(device):
    boxes = seeded(1000, 4) * 100
    boxes[:, 2:] += boxes[:, :2]
    scores, kinds = seeded(1000), torch.arange(1000) % 3
    alone = torchvision.ops.nms(boxes.to(device), scores.to(device), 0.5)
    return alone.shape[0], torchvision.ops.batched_nms(boxes.to(device), scores.to(device), kinds.to(device), 0.5).shape[0]


@case
def router(device):
    top = torch.topk(torch.softmax(seeded(512, 8).to(device), -1), 2).indices
    chosen = torch.nn.functional.one_hot(top, 8)
    return [torch.where(chosen[:, :, expert])[0].numel() for expert in range(8)]


@case
def repeats(device):
    times = torch.tensor([1, 2, 0, 3]).to(device)
    return torch.arange(4).to(device).repeat_interleave(times).tolist(), torch.bincount(times).tolist()


@case
def loop_on_the_device(device):
    x, steps = torch.zeros((), device=device), 0
    while bool(x < 16) and steps < 100:
        x += 1
        steps += 1
    return steps


@case
def answers(device):
    a = torch.arange(5).to(device)
    return torch.equal(a, a.clone()), torch.equal(a, a + 1), torch.allclose(a.float(), a.float() + 1), bool((a == a).all())


@case
def quantile(device):
    weights = torch.arange(100.0).to(device)
    return int((weights > torch.quantile(weights, 0.25)).sum())


@case
def reused_blocks(device):
    total = 0
    for i in range(5):
        a = torch.full((4,), i, device=device)
        total += a.sum().item()
        del a
        total += torch.ones(4, dtype=torch.long, device=device).sum().item()
    return total


@case
def out_arguments(device):
    out = torch.empty(0, device=device)
    torch.sum(torch.ones(3, 4).to(device), (1,), out=out)
    return out.tolist(), torch.logsumexp(torch.zeros(2, 4).to(device), -1).exp().round().tolist()


@case
def clip(device):
    weights = [torch.nn.Parameter(torch.ones(3).to(device)) for _ in range(3)]
    for weight in weights:
        weight.grad = torch.full((3,), 2.0).to(device)
    return round(torch.nn.utils.clip_grad_norm_(weights, 1.0).item(), 3), round(weights[0].grad[0].item(), 3)


@case
def packed_sequence(device):
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 3, 2).to(device), torch.tensor([3, 2, 1]), batch_first=True)
    return packed.data.shape[0], packed.batch_sizes.tolist()


@by_cudnn
def statistics_of_batches(device):
    """Batch normalisation writes its running statistics, which its schema does not say: by PyTorch's kernel, and by cuDNN's in images."""
    rows, images = torch.nn.BatchNorm1d(4).to(device), torch.nn.BatchNorm2d(2).to(device)
    for step in range(3):
        rows(torch.arange(32.0).view(8, 4).to(device) * (step + 1)).sum().backward()
        images((torch.arange(64.0) - 20 * step).view(2, 2, 4, 4).to(device))
    rows.eval(), images.eval()
    answer = images(torch.arange(64.0).view(2, 2, 4, 4).to(device))
    kept = [round(value, 2) for value in [*rows.running_mean.tolist(), *images.running_mean.tolist(), *images.running_var.tolist()]]
    return kept, rows.num_batches_tracked.item(), (answer > 1).sum().item(), (rows(torch.ones(2, 4).to(device)) > 0).tolist()


@by_cudnn
def recurrent_networks(device):
    """On the card by cuDNN, whose weights lie in one buffer."""
    torch.manual_seed(0)
    networks = [kind(6, 5, 2, bidirectional=True, batch_first=True) for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)]
    networks += [torch.nn.LSTM(6, 8, proj_size=3), torch.nn.RNN(6, 5, nonlinearity="relu", bias=False), torch.nn.LSTM(6, 5, 2, dropout=0.5).eval()]
    answers = []
    for network in networks:
        network = network.to(device)
        out, state = network(seeded(3, 4, 6).to(device) - 0.5)
        last = state[0] if isinstance(state, tuple) else state
        answers += [out.argmax(-1).tolist(), torch.nonzero(last > 0).shape[0]]
    packed = torch.nn.utils.rnn.pack_padded_sequence(seeded(3, 4, 6), torch.tensor([4, 2, 3]), batch_first=True, enforce_sorted=False)
    return answers, (networks[0].to(device)(packed.to(device))[0].data > 0).sum().item()


@by_cudnn
def attentions(device):
    """The kernels that only the card has, called as compiled programs call them."""
    kernels, query, key, value = torch.ops.aten, *(4 * (seeded(3, 2, 4, 8, 8) - 0.5))
    mask = torch.zeros(2, 4, 8, 8)
    mask[..., 5:] = -math.inf
    answers = []
    for dtype, kernel, masks in ((torch.float, kernels._scaled_dot_product_efficient_attention, True),
                                 (torch.half, kernels._scaled_dot_product_flash_attention, False),
                                 (torch.half, kernels._scaled_dot_product_cudnn_attention, True)):  # fmt: skip
        tensors = [one.to(device, dtype) for one in (query, key, value)]
        for bias, more in ((None, {}), (None, {"is_causal": True, "scale": 2.0}), (mask.to(device, dtype), {})):
            if bias is not None and not masks:
                continue
            if device == "cpu":
                out = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=bias, **more)
            else:
                out = kernel(*tensors, *((bias, False) if masks else ()), **more)[0]
            answers.append(out.argmax(-1).flatten().tolist())
    return answers


@by_cudnn
def sparse_products(device):
    """How many entries a product of sparse matrices has, cuSPARSE says, and with it the values."""
    edges = torch.stack([torch.arange(60) % 20, torch.arange(60) * 7 % 20]).to(device)
    graph = torch.sparse_coo_tensor(edges, torch.arange(60.0).to(device), (20, 20)).coalesce()
    hops = torch.sparse.mm(graph, torch.sparse.mm(graph, graph))
    return hops._nnz(), hops.coalesce().values().sum().item(), hops.to_dense()[3].tolist()


def signs(tensors):
    return [(one > 0).sum().item() for one in tensors]


@by_cudnn
def convolutions_and_their_gradients(device):
    """With a bias, which is added in place to what cuDNN gave; strided, grouped, transposed, and of one channel each."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(4, 6, 3, padding=1, stride=2), torch.nn.Conv2d(4, 8, 3, groups=2, dilation=2), torch.nn.Conv1d(4, 6, 3),
              torch.nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), torch.nn.Conv2d(4, 4, 3, groups=4), torch.nn.Conv3d(4, 2, 3)]  # fmt: skip
    answers = []
    for layer in layers:
        dimensions = layer.weight.dim() - 2
        x = (seeded(2, 4, *[7] * dimensions) - 0.5).to(device).requires_grad_()
        out = layer.to(device)(x)
        out.square().sum().backward()
        answers += [signs([out, x.grad, *(one.grad for one in layer.parameters())])]
    return answers


@by_cudnn
def gradients_of_batches(device):
    """Batch normalisation's backward pass, of rows by PyTorch's kernel and of images by cuDNN's."""
    torch.manual_seed(0)
    answers = []
    for layer, shape in ((torch.nn.BatchNorm1d(4), (8, 4)), (torch.nn.BatchNorm2d(3), (2, 3, 5, 5))):
        x = (seeded(*shape) - 0.5).to(device).requires_grad_()
        layer = layer.to(device)
        (layer(x) * (seeded(*shape) - 0.4).to(device)).sum().backward()
        answers += [signs([x.grad, layer.weight.grad, layer.bias.grad])]
    return answers


@by_cudnn
def gradients_of_recurrent_networks(device):
    torch.manual_seed(0)
    networks = [kind(6, 5, 2, bidirectional=True, batch_first=True) for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)]
    networks += [torch.nn.LSTM(6, 8, proj_size=3), torch.nn.RNN(6, 5, nonlinearity="relu", bias=False)]
    answers = []
    for network in networks:
        network = network.to(device)
        x = (seeded(3, 4, 6) - 0.5).to(device).requires_grad_()
        out, state = network(x)
        (out.square().sum() + (state[0] if isinstance(state, tuple) else state).sum()).backward()
        answers += [signs([x.grad, *(one.grad for one in network.parameters())])]
    packed = torch.nn.utils.rnn.pack_padded_sequence(seeded(3, 4, 6) - 0.5, torch.tensor([4, 2, 3]), batch_first=True, enforce_sorted=False)
    networks[0].zero_grad()
    networks[0](packed.to(device))[0].data.square().sum().backward()
    return answers, signs(one.grad for one in networks[0].parameters())


@by_cudnn
def gradients_of_attentions(device):
    """By each of the kernels that only the card has; the CPU by its formula."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mask = torch.zeros(2, 4, 8, 8)
    mask[..., 5:] = -math.inf
    answers = []
    for dtype, kernel, masks in ((torch.float, SDPBackend.EFFICIENT_ATTENTION, True), (torch.bfloat16, SDPBackend.FLASH_ATTENTION, False),
                                 (torch.bfloat16, SDPBackend.CUDNN_ATTENTION, True)):  # fmt: skip
        for more in ({}, {"is_causal": True, "scale": 2.0}, {"attn_mask": mask.to(device, dtype)}):
            if "attn_mask" in more and not masks:
                continue
            tensors = [one.to(device, dtype).requires_grad_() for one in 4 * (seeded(3, 2, 4, 8, 8) - 0.5)]
            with sdpa_kernel(SDPBackend.MATH if device == "cpu" else kernel):
                out = torch.nn.functional.scaled_dot_product_attention(*tensors, **more)
            out.square().sum().backward()
            answers.append([one.grad.float().abs().sum().round(decimals=-1).item() for one in tensors])
    return answers


@case
def parts_of_synchronised_statistics(device):
    """What torch.nn.SyncBatchNorm calls, for two ranks of different batches, together what batch normalisation of all is."""
    torch.manual_seed(0)
    x, slope = seeded(5, 3, 4, 4) - 0.3, seeded(5, 3, 4, 4) - 0.4
    weight, bias = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.1, 0.0, -0.1])
    mean, variance = torch.zeros(3), torch.ones(3)
    if device == "cpu":
        x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()
        out = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, True, 0.1, 1e-5)
        (out * slope).sum().backward()
        found = [out, x.grad, weight.grad, bias.grad, mean, variance]
    else:
        x, slope, weight, bias, mean, variance = (one.cuda() for one in (x, slope, weight, bias, mean, variance))
        ranks, slopes = x.split([3, 2]), slope.split([3, 2])
        means, inverses = (torch.stack(both) for both in zip(*(torch.batch_norm_stats(rank, 1e-5) for rank in ranks)))
        counts = torch.tensor([[3 * 16.0], [2 * 16.0]], device=device)
        all_mean, inverse = torch.batch_norm_gather_stats_with_counts(x, means, inverses, mean, variance, 0.1, 1e-5, counts.view(-1))
        out = torch.cat([torch.batch_norm_elemt(rank, weight, bias, all_mean, inverse, 1e-5) for rank in ranks])
        sums = [torch.batch_norm_backward_reduce(of, rank, all_mean, inverse, weight, True, True, True) for of, rank in zip(slopes, ranks)]
        dy, dy_xmu, of_weight, of_bias = (sum(parts) for parts in zip(*sums))
        of_x = [torch.batch_norm_backward_elemt(of, rank, all_mean, inverse, weight, dy, dy_xmu, counts.view(-1).int())
                for of, rank in zip(slopes, ranks)]  # fmt: skip
        found = [out, torch.cat(of_x), of_weight, of_bias, mean, variance]
    return [[round(value, 3) + 0.0 for value in one.flatten()[:20].tolist()] for one in found]


def rows_of_matrix(device, offsets, columns, values):
    return torch.sparse_csr_tensor(torch.tensor(offsets).to(device), torch.tensor(columns).to(device), torch.tensor(values).to(device), (3, 3),
                                   check_invariants=False)  # fmt: skip


@by_cudnn
def products_and_sums_of_rows(device):
    """Of sparse matrices in rows (CSR): cuSPARSE says how many entries there are."""
    one = rows_of_matrix(device, [0, 2, 3, 5], [0, 2, 1, 0, 2], [1.0, 2.0, 3.0, 4.0, 5.0])
    other = rows_of_matrix(device, [0, 1, 2, 3], [1, 1, 0], [1.0, 1.0, 1.0])
    found = []
    for result in (one @ one, torch.sparse.mm(one, other), one + other, one.add(other, alpha=2), one @ one @ other):
        found += [result._nnz(), result.crow_indices().tolist(), result.col_indices().tolist(), result.values().tolist(), result.to_dense().tolist()]
    return found


@case
def sums_of_sparse_tensors(device):
    """On the card one's entries come behind the other's, until they are coalesced."""
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 1]]).to(device), torch.tensor([1.0, 2.0, 3.0]).to(device)
    one = torch.sparse_coo_tensor(indices, values, (2, 3), check_invariants=False).coalesce()
    other = torch.sparse_coo_tensor(indices[:, :2].flip(0).clamp(max=1), values[:2] * 2, (2, 3), check_invariants=False).coalesce()
    total = one.clone()
    total += other
    answers = []
    for result in (one + other, one - other, torch.add(one, other, alpha=3), total, one + one):
        result = result.coalesce()
        answers += [result._nnz(), result.indices().tolist(), result.values().tolist()]
    embedding = torch.nn.Embedding(10, 2, sparse=True).to(device)
    for rows in ([1, 4, 1], [9, 4]):
        embedding(torch.tensor(rows).to(device)).sum().backward()
    gradient = embedding.weight.grad.coalesce()
    return answers, gradient._nnz(), gradient.values().tolist()


def known():
    return {name: [function("cpu"), function("cuda")] for name, function in CASES.items()}


def known_by_cudnn():
    return {name: [function("cpu"), function("cuda")] for name, function in CUDNN.items()}


def large():
    """A matrix product that is too large to be computed."""
    x = torch.ones(1024, 1024, device="cuda")
    return x @ x


def mask():
    x = large()
    return {"rows": x[x > 0].numel()}


def loss():
    return {"loss": large().mean().item()}


def looked_at(device="cuda"):
    """What a comparison or a clamp makes of a number depends on the number, whatever it is compared with."""
    def number():
        x = torch.full((1024, 1024), 1 / 16, device=device)
        return (x @ x).mean()  # 4

    one, five = torch.tensor(1.0).to(device), torch.tensor(5.0).to(device)
    calls = [("clamp_", {"min": one}), ("clamp_min_", one), ("clamp_max_", five), ("gt_", one), ("ge_", one), ("lt_", five), ("le_", five),
             ("ne_", one), ("eq_", one)]  # fmt: skip
    found = {}
    for name, other in calls:
        x = number()
        getattr(x, name)(**other) if isinstance(other, dict) else getattr(x, name)(other)
        found[name] = x.int().item()
    return found


ROWS = 200_000


def drawn(count=ROWS):
    return torch.randn(count, device="cuda")


def mask_on_the_host():
    scores = drawn()
    return {"rows": (scores.cpu() > 0).nonzero().shape[0], "selected": scores.cpu().masked_select(scores.cpu() > 0).numel()}


def decisions_on_the_host():
    scores, most = torch.empty(ROWS), torch.empty(4)
    scores.copy_(drawn())
    most.copy_(drawn(4))
    known = most.clone().fill_(3)
    return {"any": bool((scores > 0).any()), "best": scores.argmax().item() < ROWS, "counted": (scores > 0).sum().item() <= ROWS,
            "known": bool((known > 2).all()), "back": bool((most.cuda() > -100).all())}  # fmt: skip


def made_integers():
    x = large()
    y = (x > 0).float()
    int(y.sum())
    range(int(y.mean().item()))
    bool(y.amax()), math.floor(y.sum())
    return {"ends": "well"}


def printed():
    """Numbers that are looked at by people alone."""
    loss = large().mean()
    history = torch.zeros(3)
    history[1] = loss.item()
    print(f"{float(loss):.3f}, {loss.item()}, {loss.cpu()}", file=sys.stderr)
    return {"loss": loss.item(), "losses": large()[0, :3].tolist(), "kept": history.tolist()}


def pieces():
    """Counts beside statistics that nobody knows, put together and taken apart again."""
    mean, count = large()[0, :4].clone(), torch.full((1,), 3.0, device="cuda")
    row = torch.cat([mean, mean, count])
    means, _, counts = torch.stack([row, row, torch.zeros_like(row)]).split([4, 4, 1], 1)
    kept = counts.squeeze(-1) >= 1
    return {"counts": counts[kept].shape[0], "means": means[kept].shape[0], "total": int(counts.sum().item())}


def dropped(network):
    """What a backward pass dropped, only its own kernel knows, although all that it is given is known."""
    out = network(seeded(3, 4, 6).cuda())[0]
    out.sum().backward()
    return {"positive": next(network.parameters()).grad.gt(0).sum().item() >= 0}


def dropped_by_a_recurrent_network():
    torch.manual_seed(0)
    return dropped(torch.nn.GRU(6, 5, 2, dropout=0.5).cuda())


def dropped_by_attention():
    torch.manual_seed(0)
    return dropped(Attending().cuda())


class Attending(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(48.0).view(6, 8) / 48)  # a head of 8, as the fused kernels want

    def forward(self, x):
        query = (x @ self.weight).unsqueeze(1)
        return torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)


def product_of_drawn_edges():
    graph = torch.sparse_coo_tensor(torch.randint(20, (2, 60), device="cuda"), torch.ones(60, device="cuda"), (20, 20))
    return {"entries": torch.sparse.mm(graph, graph)._nnz()}


def ties():
    scores = torch.tensor([2, 1, 1, 1, 0]).cuda()
    return {"values": scores.topk(2).values.tolist(), "indices": scores.topk(2).indices.shape[0], "taken": len(scores.topk(2).indices.tolist())}


def no_ties():
    scores = torch.tensor([2, 1, 1, 1, 0]).cuda()
    return {"values": scores.topk(2).values.tolist(), "largest": scores.topk(1).indices.tolist(), "four": scores.topk(4).indices.shape[0]}


def sorted_equals():
    """Equal keys: the values are the same in any order, the indices are not."""
    keys = torch.tensor([1, 0] * 20).cuda()
    return {"taken": keys.argsort()[:5].tolist()}


def sorted_different():
    keys = torch.tensor([3, 1, 2]).cuda()
    equal = torch.tensor([1, 0, 1]).cuda()
    values, indices = equal.sort()
    placed = torch.zeros(3, dtype=torch.long).cuda().scatter_(0, keys.argsort(), torch.arange(3).cuda())
    same = torch.zeros(3).cuda()
    same[torch.tensor([1, 1]).cuda()] = torch.tensor([4.0, 4.0]).cuda()
    return {"indices": keys.argsort().tolist(), "values": values.tolist(), "stable": equal.argsort(stable=True).tolist(), "of": len(indices),
            "placed": placed.tolist(), "same": same.long().tolist(), "median": keys.median(0).indices.item()}  # fmt: skip


def one_of_several(kind):
    two = torch.tensor([0, 0]).cuda()
    values = torch.tensor([5, 6]).cuda()
    score = torch.tensor([1.0, 2.0, 2.0, 1.0, 2.0]).cuda()
    pool = torch.tensor([[[[3.0, 5.0]]]]).cuda()
    made = {
        "scatter_": lambda: torch.zeros(3, dtype=torch.long).cuda().scatter_(0, two, values),
        "scatter_ into new memory": lambda: torch.empty(1, dtype=torch.long, device="cuda").scatter_(0, two, values),
        "index_put_": lambda: torch.zeros(3, dtype=torch.long).cuda().index_put_((two,), values),
        "index_copy_": lambda: torch.zeros(3, dtype=torch.long).cuda().index_copy_(0, two, values),
        "put_": lambda: torch.zeros(3, dtype=torch.long).cuda().put_(two, values),
        "max_unpool2d": lambda: torch.nn.functional.max_unpool2d(pool, torch.tensor([[[[1, 1]]]]).cuda(), (1, 2)).long(),
        "median": lambda: score.median(0).indices,
        "mode": lambda: score.mode().indices,
        "kthvalue": lambda: score.kthvalue(4).indices,
        "topk": lambda: torch.arange(5).cuda().topk(3, sorted=False).values,
        "eigh": lambda: torch.linalg.eigh(torch.eye(3).cuda() * 2 - torch.ones(3, 3).cuda())[1].gt(0).sum(),
        "svd": lambda: torch.linalg.svd(torch.tensor([[3.0, 1.0], [1.0, 2.0]]).cuda())[0].gt(0).sum(),
        "cumsum": lambda: (torch.full((64,), 0.1, dtype=torch.bfloat16).cuda().cumsum(0) < 3).sum(),
    }
    return made[kind]().tolist()


def rounded_to_tf32(product=4097.0):
    torch.backends.cuda.matmul.allow_tf32 = True
    return {"rows": int((torch.full((16, 16), product).cuda() @ torch.eye(16).cuda())[0, 0])}


def exact_in_tf32():
    return rounded_to_tf32(4096.0)


def one(*numbers, dtype=torch.long):
    return torch.tensor(numbers, dtype=dtype)


def ones(*shape):
    return torch.ones(*shape)


# What a kernel on a card checks, and the CPU too. Each is given a function that puts tensors on the device.
functional = torch.nn.functional
BEYOND = {
    "embedding": lambda on: functional.embedding(on(torch.tensor([[5, 100]])), on(ones(100, 4))),
    "embedding_bag": lambda on: functional.embedding_bag(on(one(9)), on(ones(3, 2)), on(one(0))),
    "index_select": lambda on: on(ones(2, 3)).index_select(1, on(one(0, 3))),
    "gather": lambda on: on(ones(2, 3)).gather(1, on(torch.tensor([[0, 2], [-1, 0]]))),
    "scatter": lambda on: on(ones(3)).scatter(0, on(one(9)), on(ones(1))),
    "scatter_add": lambda on: on(ones(3)).scatter_add_(0, on(one(0, -1)), on(ones(2))),
    "scatter_reduce": lambda on: on(ones(3)).scatter_reduce_(0, on(one(3)), on(ones(1)), "amax"),
    "one_hot": lambda on: functional.one_hot(on(one(1, 4)), 3),
    "index_add": lambda on: on(ones(3, 2)).index_add_(0, on(one(3)), on(ones(1, 2))),
    "index_copy": lambda on: on(ones(3, 2)).index_copy_(0, on(one(3)), on(ones(1, 2))),
    "index_reduce": lambda on: on(ones(3, 2)).index_reduce_(0, on(one(3)), on(ones(1, 2)), "amax"),
    "index_fill": lambda on: on(ones(3)).index_fill_(0, on(one(-4)), 1.0),
    "take": lambda on: on(ones(2, 2)).take(on(one(4))),
    "put": lambda on: on(ones(2, 2)).put_(on(one(-5)), on(ones(1))),
    "index": lambda on: on(ones(4, 3))[:, on(one(0, 3))],
    "index_put": lambda on: on(ones(4, 3)).index_put_((on(one(0)), on(one(-4))), on(ones(1))),
    "nll_loss_forward": lambda on: functional.cross_entropy(on(ones(2, 3)), on(one(0, 3))),
    "nll_loss2d_forward": lambda on: functional.cross_entropy(on(ones(1, 3, 2, 1)), on(one(0, -1).view(1, 2, 1))),
    "multi_margin_loss": lambda on: functional.multi_margin_loss(on(ones(1, 3)), on(one(3))),
    "max_unpool2d": lambda on: functional.max_unpool2d(on(ones(1, 1, 1, 2)), on(torch.tensor([[[[0, 99]]]])), (1, 2)),
    "binary_cross_entropy": lambda on: functional.binary_cross_entropy(on(torch.tensor([1.5])), on(ones(1))),
    "bernoulli": lambda on: torch.bernoulli(on(torch.tensor([2.0]))),
    "masked_scatter": lambda on: on(ones(3)).masked_scatter_(on(one(1, 1, 0, dtype=torch.bool)), on(ones(1))),
    "_assert_async": lambda on: torch._assert_async(on(one(0)), "nothing is left"),
    "computed": lambda on: on(ones(3))[on(one(1, 2)) * 2],
}


# What a card rounds otherwise than the CPU. Each is given a function that puts tensors on the device.
tenths = torch.full((64,), 0.1)
bf16 = torch.bfloat16
ROUNDED = {
    # By a formula of the card's own: the test has it in float32.
    "divided by a number": lambda on: (on(torch.arange(4100.0)) / 41.0).floor().long().bincount().tolist(),
    "divided in place": lambda on: on(torch.arange(200.0)).div_(41).floor().long().bincount().tolist(),
    "cut off": lambda on: on(torch.arange(200.0)).div(41, rounding_mode="trunc").long().bincount().tolist(),
    "a mean": lambda on: int(on(ones(41)).mean() == 1),
    "means of rows": lambda on: (on(ones(3, 41)).mean(1) == 1).tolist(),
    "arange": lambda on: (torch.arange(0, 10, 0.1, device=on(ones(1)).device) * 10).floor().long().tolist(),
    "linspace": lambda on: (torch.linspace(0, 1, 50, device=on(ones(1)).device) * 49).floor().long().tolist(),
    # The CPU's, on every card.
    "integers": lambda on: (int(on(torch.arange(1000.0)).sum()), int(on(torch.arange(100.0)).cumsum(0)[-1]), int(on(ones(8) * 3) @ on(ones(8)))),
    "a whole interval": lambda on: (int(on(tenths).sum() > 6), int(on(tenths).cumsum(0)[-1].long()), on(tenths).exp().floor().long().tolist()),
    "the order of numbers apart": lambda on: on(torch.tensor([3.0, 1.0, 2.0])).exp().argsort().tolist(),
    "the largest": lambda on: int((on(torch.rand(9, generator=torch.Generator().manual_seed(3))) * 3).exp().argmax()),
    "half precision": lambda on: int(torch.zeros(2, device=on(ones(1)).device, dtype=bf16).index_add_(0, on(one(*[0, 1] * 99)), on(ones(198).to(bf16)))[0]),
    "moved": lambda on: int((torch.cat([on(tenths).sum().view(1), on(ones(1)) * 9]).flip(0)[1].clamp(0, 5) == 5)),
}  # fmt: skip
UNDECIDED = {
    "scatter_add": lambda on: int(torch.zeros(8, device=on(ones(1)).device, dtype=bf16).scatter_add_(0, on(torch.arange(8192) % 8), on(ones(8192).to(bf16))).max()),
    "index_put": lambda on: int(torch.zeros(2, device=on(ones(1)).device, dtype=bf16).index_put_((on(torch.arange(999) % 2),), on(ones(999).to(bf16)), accumulate=True)[0]),
    "index_add": lambda on: int(torch.zeros(2, device=on(ones(1)).device).index_add_(0, on(torch.arange(64) % 2), on(tenths)).sum() >= 6.4),
    "cumsum": lambda on: int(on(ones(999).to(bf16)).cumsum(0)[-1]),
    "prod": lambda on: int(on(torch.full((40,), 1.125).to(bf16)).prod()),
    "nll_loss": lambda on: int(functional.nll_loss(on((ones(999, 2) * 1.5).to(bf16)), on(torch.zeros(999, dtype=torch.long))) * -1000),
    "sum": lambda on: int(on(tenths).sum() == tenths.double().sum().float().item()),
    "var": lambda on: int(on(tenths).cumsum(0).var() * 1e6),
    "exp": lambda on: int(on(torch.log(torch.tensor(3.0))).exp() >= 3),
    "bincount": lambda on: int(torch.bincount(on(torch.arange(640) % 2), on(torch.full((640,), 0.1)))[0] >= 32),
    "nonzero": lambda on: (on(tenths).cumsum(0) >= 3.2).nonzero().shape[0],
    "read as it is": lambda on: on(torch.rand(9, generator=torch.Generator().manual_seed(2))).sum().item() > 0,
}  # fmt: skip


def on_both(function):
    return [function(lambda tensor: tensor.to(device)) for device in ("cpu", "cuda")]


def rounded():
    return in_processes(lambda kind: on_both(ROUNDED[kind]), ROUNDED)


def undecided():
    return in_processes(lambda kind: on_both(UNDECIDED[kind]), UNDECIDED)


def in_processes(function, kinds):
    """Each kind in a process of its own, forked before anybody uses the card: what it says, and which process it is."""
    children, said = {}, {}
    for kind in kinds:
        reads, writes = os.pipe()
        children[kind] = (os.fork(), reads)
        if children[kind][0] == 0:
            with os.fdopen(writes, "w") as pipe:
                pipe.write(json.dumps(function(kind)))
            sys.exit()
        os.close(writes)
    for kind, (process, reads) in children.items():
        with os.fdopen(reads) as pipe:
            said[kind] = {"process": process, "said": json.loads(pipe.read() or "null")}
        os.waitpid(process, 0)
    return said


def beyond():
    return in_processes(how_it_ends, BEYOND)


def how_it_ends(kind):
    """How it ends on the CPU, and on the card when the host waits for it and afterwards."""
    said = {}
    for device in ("cpu", "cuda"):
        try:
            said[device] = "went on"
            BEYOND[kind](lambda tensor: tensor.to(device))  # the card stops here
            said["asked"] = torch.empty(8, device="cuda").numel()
            torch.cuda.synchronize() if device == "cuda" else None
        except (IndexError, RuntimeError) as error:
            said[device] = str(error).splitlines()[0]
    try:
        torch.ones(1 << 20, device="cuda")
    except RuntimeError as error:
        said["afterwards"] = str(error).splitlines()[0]
    return said


def label_beyond():
    """Nobody catches it."""
    return functional.cross_entropy(ones(2, 3).cuda(), one(0, 3).cuda()).item()


def label_beyond_is_caught():
    """Where the program is when it hears of it."""
    place = "operator"
    try:
        functional.cross_entropy(ones(2, 3).cuda(), one(0, 3).cuda())
        place = "wait"
        torch.cuda.synchronize()
        return {"stopped at": "nowhere"}
    except RuntimeError as error:
        return {"stopped at": place, "said": str(error).splitlines()[0]}


@case
def indices_within(device):
    """From the end where that is allowed, labels that are ignored, masks, nothing at all."""
    x, empty = torch.arange(12.0).view(4, 3).to(device), torch.zeros(0, dtype=torch.long, device=device)
    last = one(-1, 2).to(device)
    labels = one(0, -100, 2, 1).to(device)
    filled = x.clone().index_fill_(0, one(-4).to(device), 9.0)
    put = x.clone().index_put_((last, one(0, -3).to(device)), torch.tensor([7.0, 8.0]).to(device))
    loss = [functional.cross_entropy(x, labels), functional.cross_entropy(x, one(0, 7, 7, 1).to(device), ignore_index=7),
            functional.cross_entropy(x[None, :, :, None], one(0, -100, 3).view(1, 3, 1).to(device)),
            functional.nll_loss(x[0], one(2)[0].to(device))]  # fmt: skip
    torch._assert_async(x.sum() > 0)
    return (x[last].tolist(), x[:, one(-3).to(device)].tolist(), x[x > 4].tolist(), filled.tolist(), put.tolist(), x.take(one(-12).to(device)).tolist(),
            x[empty].tolist(), x.gather(0, empty.view(0, 3)).tolist(), [round(one.item(), 4) for one in loss], x[[0, -1]].tolist(),
            functional.embedding(one(3, 0).to(device), x).tolist(), x.index_select(1, one(2).to(device)).tolist())  # fmt: skip


def indices_that_are_not_known():
    weights = ones(4, 2).cuda()
    drawn = torch.randint(0, 1 << 20, (8,), device="cuda")
    functional.embedding(drawn, weights), weights[drawn], functional.cross_entropy(torch.ones(8, 4, device="cuda"), drawn)
    torch.cuda.synchronize()
    return {"went on": True}


def captured():
    """A graph that is captured runs nothing then."""
    weights, index = ones(4, 2).cuda(), one(9).cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        weights.index_select(0, index)
    index.copy_(one(1))
    graph.replay()
    torch.cuda.synchronize()
    return {"went on": True}


def beyond_integers():
    return in_processes(made_integer, INTEGERS)


INTEGERS = ("infinity", "too much", "nan", "int8", "less than nothing", "half", "copy_", "into a part", "_foreach_copy_", "sum", "clamped", "a size")


def made_integer(kind):
    """Of a number that no such integer can hold."""
    big = torch.tensor([8192.0]).cuda() / torch.tensor([0.0]).cuda() if kind == "infinity" else torch.tensor([1e10]).cuda()
    made = {
        "infinity": lambda: big.int(),
        "too much": lambda: big.to(torch.int32),
        "nan": lambda: (big * float("nan")).long(),
        "int8": lambda: torch.tensor([129.0]).cuda().to(torch.int8),
        "less than nothing": lambda: torch.tensor([-1.0]).cuda().to(torch.uint16).int(),
        "half": lambda: torch.tensor([65504.0]).half().cuda().short(),
        "copy_": lambda: torch.zeros(1, dtype=torch.int32).cuda().copy_(big),
        "into a part": lambda: torch.empty(6, dtype=torch.int32, device="cuda")[1::2].copy_(big.expand(3)),
        "_foreach_copy_": lambda: torch._foreach_copy_([torch.zeros(1, dtype=torch.int32).cuda()], [big])[0],
        "sum": lambda: big.mul(1e10).sum(dtype=torch.int64),
        "clamped": lambda: big.int().clamp(0, 7),
        "a size": lambda: big.int().clamp(0, 1).nonzero()[:0].sum(),
    }
    return made[kind]().tolist()


@case
def integers_within(device):
    """What fits once its fraction is cut off, and what the host converts before it copies."""
    x = torch.zeros(4, dtype=torch.int32).to(device)
    x[2:3] = torch.tensor([1e10]).to(device)
    return (torch.tensor([127.9, -128.9]).to(device).to(torch.int8).tolist(), torch.tensor([255.9, -1.0, 300.0]).to(device).to(torch.uint8).tolist(),
            torch.tensor([2.0**62, -(2.0**63)]).to(device).long().tolist(), torch.tensor([2147483520.0]).to(device).int().tolist(),
            torch.tensor([1.5, 2.5]).to(device).sum(dtype=torch.int64).item(), torch.tensor([1e10]).to(device, torch.int32).tolist(),
            torch.tensor([float("nan")]).to(device).to(torch.bool).tolist(), x[:2].tolist())  # fmt: skip


def overflow():
    """As DeepSpeed and others look for gradients that are not finite, whatever their size."""
    gradients = [torch.empty(1 << 21, device="cuda", dtype=torch.float16), torch.empty(16, device="cuda")]
    invalid = torch.zeros(1, device="cuda")
    for gradient in gradients:
        gradient = gradient.float()
        invalid += gradient.isnan().logical_or(gradient.isinf()).float().max()
    nobody = not torch.stack([torch.isfinite(one).all() for one in gradients]).all()
    clean = gradients[1].clone()
    clean[torch.isnan(clean)] = 0
    return {"overflow": bool(invalid.bool().item()), "any": bool(torch.isnan(gradients[0]).any()) or nobody}


def stale():
    a = torch.full((4,), 7, device="cuda")
    address = a.data_ptr()
    del a
    b = torch.empty(4, dtype=torch.long, device="cuda")
    return {"same block": b.data_ptr() == address, "values": b.tolist()}


def scaler():
    model = torch.nn.Linear(2048, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.ones(64, 2048, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return {"scale": scaler.get_scale()}


def checks():
    logits = torch.nn.Linear(1024, 4, device="cuda")(torch.ones(32, 1024, device="cuda"))
    actions = torch.distributions.Categorical(logits=logits)
    actions.log_prob(actions.sample())
    torch.distributions.Normal(logits, logits.exp()).rsample()
    return {"checks": "passed"}


def generator():
    """Random numbers of the card are not drawn from the CPU's."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    torch.rand(8, device="cuda").tolist()
    return {"untouched": torch.equal(before, torch.get_rng_state())}


def foreign_kernel():
    """A kernel that no operator launches may write anywhere."""

    class Dim3(ctypes.Structure):
        _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]

    x = torch.tensor([3, 4]).to("cuda") + 1
    before = x.tolist()
    one = Dim3(1, 1, 1)
    runtime = ctypes.CDLL("libcudart.so.13")
    result = runtime.cudaLaunchKernel(ctypes.c_void_p(1), one, one, None, ctypes.c_size_t(0), None)
    return {"launched": result, "before": before, "after": x.tolist()}


def statistics():
    """An operator that writes running statistics, which its schema does not say, and of which nothing is recorded."""
    mean = torch.zeros(4).cuda()
    torch.batch_norm_update_stats(torch.ones(8, 4).cuda(), mean, torch.ones(4).cuda(), 0.1)
    return {"read": len(mean.tolist())}


def checkpoint():
    """Weights that nobody knows, saved, and a loss that is looked at for being finite: neither decides what the program does."""
    x = large()
    file = io.BytesIO()
    torch.save(x.mean(0), file)
    return {"finite": bool(torch.isfinite(x.mean())) and not torch.isnan(x.mean()), "saved": file.tell() > 0}


def after_a_checkpoint():
    """Tensors of which one lies where the one lay by which a storage was read."""
    x = large()
    torch.save(x.mean(0), io.BytesIO())
    counts = [(x > 0).sum() for _ in range(200)]
    return {"counts": len([count.item() for count in counts])}


def symbolic():
    """Sizes that are symbols stay so."""
    batch = torch.export.Dim("batch", min=2, max=64)
    model = torch.nn.Linear(4, 2).cuda()
    program = torch.export.export(model, (torch.randn(4, 4, device="cuda"),), dynamic_shapes=({0: batch},))
    return {"rows": program.module()(torch.randn(16, 4, device="cuda")).shape[0]}


def jit():
    """What torch.jit records: the program's operators, and none that only computes values. A long chain is computed at once, and rounded to TF32."""
    model = torch.nn.Sequential(*[part for _ in range(70) for part in (torch.nn.Conv2d(8, 8, 1), torch.nn.ReLU(inplace=True))]).eval()
    graphs = []
    for device in ("cpu", "cuda"):
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
            traced = torch.jit.trace(model.to(device), torch.rand(1, 8, 3, 3).to(device))
        graphs.append([node.kind() for node in traced.inlined_graph.nodes()])
    return graphs


def modes_of_rows():
    """Of integers that the host knows, all different but two: on the CPU and on the card."""
    row = torch.arange(1 << 18) * 7919 % (1 << 18)
    row[5] = row[77]
    rows = torch.stack([row.flip(0), row])
    return [[row.to(device).mode()[0].item(), rows.to(device).mode(1)[0].tolist(), rows.to(device).t().contiguous().mode(0)[0].tolist()]
            for device in ("cpu", "cuda")]  # fmt: skip


def rows_of_the_card():
    """2 MiB that nobody knows: the results have their sizes all the same, and each block is a multiple of 512 bytes."""
    rows = torch.randn(2, 1 << 18, device="cuda")
    made = {}
    for name in ("mode", "kthvalue", "median", "nanmedian", "cummax", "cummin", "topk", "sort", "max", "min"):
        before = torch.cuda.memory_allocated()
        results = getattr(rows, name)(*{"kthvalue": (3,), "topk": (5,)}.get(name, ()), dim=1)
        blocks = [-(-result.numel() * result.itemsize // 512) * 512 for result in results]
        made[name] = [list(map(len, results)), torch.cuda.memory_allocated() - before - sum(blocks)]
        del results
    made["isin"] = [list(torch.isin(rows, rows[0, :9]).shape), 0]
    return made


def negated():
    """Written through a view that is more than a tensor in a storage."""
    x = torch.ones(3, dtype=torch.complex64).to("cuda")
    x.conj().imag.fill_(5)
    return {"read": len(x.tolist())}


def step():
    """A training step of which nothing is read."""
    model = torch.nn.Sequential(torch.nn.Linear(2048, 512), torch.nn.LayerNorm(512), torch.nn.Linear(512, 16)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.ones(64, 2048).cuda()), torch.zeros(64, dtype=torch.long).cuda()).backward()
        optimizer.step()
    statistics = torch.cuda.memory_stats()
    del model, optimizer
    torch.cuda.reset_peak_memory_stats()
    return {key: statistics[key + ".all.peak"] for key in ("requested_bytes", "allocated_bytes", "reserved_bytes")}


def no_memory_of_the_host():
    """The values take 16 MiB each, and the host has no more while one is read."""
    import resource

    x = torch.arange(1 << 21).to("cuda")
    numbers = x * 3 + 1
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20), resource.RLIM_INFINITY))
    try:
        return {"read": numbers[5].item() is not None}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def too_much():
    kept = torch.empty(30 << 30, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(60 << 30, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    for _ in range(2):
        try:
            torch.empty(55 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
    return {"had": kept.numel()}


if __name__ == "__main__":
    print(json.dumps({kind: one_of_several(kind[3:]) if kind.startswith("of ") else globals()[kind]() for kind in sys.argv[1:]}))
