"""Training with a pipeline: each rank has some consecutive blocks of the model.

A stage runs the user's own function of the loss, and so the model's own forward: blocks of earlier stages pass on what they are given, the stage's
first block gets what the stage before has sent, and forward is left after the stage's last block. So it is for any model with one list of blocks.
"""

import contextlib
from typing import Any, Callable, Iterator, List, Optional

import torch
import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from peakbench._objects import Unsupported
from peakbench.strategies._offer import WITHIN, another, blocks_of, device_of, every_rank, strategy, trained


@strategy("pipeline", WITHIN, aliases=("pipeline-parallel",), for_ranks=True, distinct=every_rank)
def pipeline(model: nn.Module, optimizer: Optimizer, batch: int, mesh: Any, size: int = 0, parts: int = 0, stages: int = 1) -> Callable[..., Any]:
    """Blocks on different ranks, in the order 1F1B, or with several ``stages`` a rank interleaved 1F1B.

    https://docs.pytorch.org/docs/stable/distributed.pipelining.html

    ``parts`` is the number of microbatches; 0: one a rank. The whole model is on each rank's device before, so that a peak contains it.
    """
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

    if stages < 1:
        raise Unsupported(f"pipeline: stages: expected 1 or more, got {stages}")
    total, rank, device = mesh.size() * stages, mesh.get_local_rank(), device_of(model)
    parts = parts or mesh.size()
    if parts < mesh.size() or batch % parts:
        raise Unsupported(f"pipeline: parts: expected {mesh.size()} or more that divide the {batch} samples of a batch, got {parts}")
    split = _Split(model, total)
    mine = [_Part(split, index, parts) for index in range(rank, total, mesh.size())]
    made: List[Any] = []
    whole = [optimizer]  # until there is one for this rank's parameters

    def start(loss: Callable[..., Any]) -> None:
        """Once the loss is known. What the stages exchange comes from a part of the batch, up to the first block."""
        hidden, value = split.sent(loss, slice(0, batch // parts)), torch.empty(1, device="meta")
        split.keep(mine)
        sizes = [(() if one.is_first else hidden, value if one.is_last else hidden) for one in mine]
        given: Any = [PipelineStage(one, one.index, total, device, *size, mesh.get_group()) for one, size in zip(mine, sizes)]
        options: Any = {"loss_fn": lambda value, _: value.squeeze(), "scale_grads": False}
        schedule = Schedule1F1B(given[0], parts, **options) if stages == 1 else ScheduleInterleaved1F1B(given, parts, **options)
        made.extend((schedule, another(whole.pop(), trained(model))))

    def step(loss: Callable[..., Any]) -> Any:
        if not made:
            start(loss)
        schedule, own = made
        own.zero_grad()
        values: List[torch.Tensor] = []
        split.loss, rows = loss, torch.arange(batch)
        try:
            schedule.step(target=rows, losses=values, return_outputs=False, rows=rows)
        except RuntimeError as error:  # in its words, with ours as the cause
            raise error.__cause__ or error
        own.step()
        value = torch.stack([one.detach() for one in values]).sum() if values else torch.zeros((), device=device)
        dist.broadcast(value, group=mesh.get_group(), group_src=mesh.size() - 1)
        return value

    return step


class _Part(nn.Module):
    """The module of a stage: given what the stage before has sent, and the rows of a part of the batch."""

    def __init__(self, split: "_Split", index: int, parts: int) -> None:
        super().__init__()
        self.model, self.index, self._split, self._parts = split.model, index, split, parts
        self.begin, self.end = split.ends[index : index + 2]
        self.is_first, self.is_last = index == 0, index == len(split.ends) - 2

    def forward(self, *hidden: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        first, last = rows[0].item(), rows[-1].item()
        value = self._split.run(self.begin, self.end, slice(int(first), int(last) + 1), *(hidden or (None,)))
        return (value.float() / self._parts).reshape(1) if self.is_last else value


class _Passing(nn.Module):
    """In place of a block of an earlier stage."""

    def forward(self, given: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return given


class _Returning(nn.Module):
    """In place of a module with parameters before the blocks."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, *_: Any, **__: Any) -> torch.Tensor:
        return self.hidden


class _First(nn.Module):
    """A stage's first block, which gets what the stage before has sent."""

    def __init__(self, block: nn.Module, hidden: torch.Tensor) -> None:
        super().__init__()
        self.block, self.hidden = block, hidden

    def forward(self, _: torch.Tensor, *more: Any, **named: Any) -> Any:
        return self.block(self.hidden, *more, **named)


class _Last(nn.Module):
    """A stage's last block."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, *given: Any, **named: Any) -> Any:
        raise _Left(self.block(*given, **named))


class _Left(Exception):
    """Forward is left: a stage is done."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__("the end of a stage")
        self.hidden = hidden


class _Split:
    """A model's blocks, in as many stages. Parameters before the blocks are of the first stage, those after them of the last."""

    def __init__(self, model: nn.Module, stages: int) -> None:
        self.model, self.blocks = model, blocks_of(model)
        lists = [one for one in model.modules() if self.blocks and self.blocks[0] in one.children()]
        name = type(model).__name__
        if len(lists) != 1 or list(lists[0].children()) != self.blocks:
            raise Unsupported(f"pipeline: {name} has no list of blocks, or several")
        if len(self.blocks) < stages:
            raise Unsupported(f"pipeline: {stages} stages need as many blocks, and {name} has {len(self.blocks)}")
        self._list = lists[0]
        self.ends = [stage * len(self.blocks) // stages for stage in range(stages + 1)]
        inside = {id(one) for block in self.blocks for one in block.parameters()}
        order = list(model.named_parameters(remove_duplicate=False))
        if len({id(one) for _, one in order}) < len(order):
            raise Unsupported(f"pipeline: {name} uses a parameter twice, such as an output head that is the embedding: its stages have no copy of it")
        first = next(at for at, (_, one) in enumerate(order) if id(one) in inside)
        self._before = {id(one) for _, one in order[:first]}
        self._modules_before = [
            (above, name, one)
            for above in model.modules()
            for name, one in above.named_children()
            if self._before & {id(own) for own in one.parameters(recurse=False)}
        ]
        self._after = {id(one) for _, one in order[first:]} - inside
        around = [one for one in model.modules() if self.blocks[0] in one.modules() and list(one.parameters(recurse=False))]
        if around:
            raise Unsupported(f"pipeline: {type(around[0]).__name__} has parameters beside its list of blocks, which no stage has")
        self.loss: Callable[..., Any] = lambda: None

    def sent(self, loss: Callable[..., Any], rows: slice) -> torch.Tensor:
        """What the first block is given, without its values."""
        with torch.no_grad(), self._blocks_as(lambda number, block: _Last(_Passing())):
            try:
                loss(rows)
            except _Left as left:
                return left.hidden.to("meta")
        raise Unsupported(f"pipeline: the loss does not call the blocks of {type(self.model).__name__}")

    def keep(self, parts: "List[_Part]") -> None:
        """Moves what no part of this rank needs to the meta device, so that its memory is free."""
        kept = {id(one) for part in parts for block in self.blocks[part.begin : part.end] for one in block.parameters()}
        kept |= (self._before if parts[0].is_first else set()) | (self._after if parts[-1].is_last else set())
        for module in self.model.modules():
            for name, one in list(module.named_parameters(recurse=False)):
                if id(one) not in kept:
                    setattr(module, name, nn.Parameter(torch.empty(one.shape, dtype=one.dtype, device="meta"), one.requires_grad))

    @contextlib.contextmanager
    def _blocks_as(self, made: Callable[[int, nn.Module], nn.Module]) -> Iterator[None]:
        """Others are in their places in the model's list meanwhile."""
        own = self._list._modules
        self._list._modules = {name: made(number, block) for number, (name, block) in enumerate(own.items()) if block is not None}
        try:
            yield
        finally:
            self._list._modules = own

    @contextlib.contextmanager
    def _before_as(self, hidden: torch.Tensor) -> Iterator[None]:
        """Modules with parameters before the blocks return this meanwhile, as the first stage has the parameters."""
        for above, name, _ in self._modules_before:
            above._modules[name] = _Returning(hidden)
        try:
            yield
        finally:
            for above, name, own in self._modules_before:
                above._modules[name] = own

    def run(self, begin: int, end: int, rows: slice, hidden: Optional[torch.Tensor]) -> torch.Tensor:
        """The loss of those samples, or what the last of these blocks returns."""

        def in_place_of(number: int, block: nn.Module) -> nn.Module:
            if number < begin:
                return _Passing()
            received = _First(block, hidden) if number == begin and hidden is not None else block
            return _Last(received) if number == end - 1 < len(self.blocks) - 1 else received

        with self._blocks_as(in_place_of), contextlib.nullcontext() if hidden is None else self._before_as(hidden):
            try:
                value: torch.Tensor = self.loss(rows)
                return value
            except _Left as left:
                return left.hidden
