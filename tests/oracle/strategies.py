"""The strategies as a user of stock PyTorch writes them: each the way its tutorial or documentation does, a module each in stock/.

A module is named as the strategy is (fused-in-backward: fused_in_backward.py) and has what it needs of

  prepare(model, options, subject) -> model     changes the model that was built, before it is initialised
  install(step, options)                        changes the step, see Step
  BUILDS_ON_HOST                                prepare moves the model to its device, which is built on the host
  STACKS, BFLOAT16_STACKS                       stacks that tests/parity compares on the CPU
  DECODER_STACKS, VIT_STACKS, GPT2_STACKS, UNTIED_STACKS     only on this family; only where the output head has a weight of its own
  FAMILIES                                      of models, where these are not all of them: ("decoder",)
  NUMBERS                                       where numbers are not equal to the bit: {"absolute": 1e-6, "relative": 1e-5}
  BYTES                                         where bytes are not compared: why; or {stack: why}
  ORDER                                         where a phase has the same allocations in another order: why
  NUMBERS_TWICE                                 a text: in stacks that hold it Python wraps each number twice, see tests/parity

A stack ("lora+checkpointing,every=2") is applied in the order of the manifests, whatever the typing order.
"""

import contextlib
import functools
import importlib
import json
import pathlib

import torch

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Whose plugins are the bundled ones, the examples, and those that the tests of the worker plant.
MANIFESTS = ("plugins/*/plugin.json", "examples/*/plugin.json", "tests/worker/planted/around_inputs.json", "tests/worker/planted/passes.json")
STACKS = BFLOAT16_STACKS = ["baseline"]
# The first way of a strategy is always compared; these are of a second one.
STACKS = [*STACKS, "checkpointing,parts=attention"]


@functools.cache
def manifests():
    """id -> its entry, with the manifest that it is in, below SOURCE."""
    found = {}
    for path in sorted(path for pattern in MANIFESTS for path in SOURCE.glob(pattern)):
        for entry in json.loads(path.read_text())["entries"]:
            found[entry["id"]] = {**entry, "manifest": str(path.relative_to(SOURCE))}
    return found


def module_of(name):
    try:
        return importlib.import_module(f"stock.{name.replace('-', '_')}")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("stock"):
            raise SystemExit(f"{name}: stock PyTorch's own is not in tests/oracle/stock") from None
        raise


def modules(stack):
    """(module, options) in the order of the manifests."""
    return [(module_of(name), stack[name]) for name in stack if name != "baseline"]


def parse(stack):
    """"a,k=v+b" -> {"a": {"k": "v"}, "b": {}}, in the order of the manifests"""
    parsed = {}
    for part in stack.split("+"):
        name, *options = part.split(",")
        if name not in manifests():
            raise SystemExit(f"unknown strategy {name}; one of {', '.join(sorted(manifests()))}")
        parsed[name] = dict(option.split("=", 1) for option in options)
    return {name: parsed[name] for name in sorted(parsed, key=lambda name: (name != "baseline", manifests()[name]["order"], name))}


def prepare(model, stack, subject):
    for module, options in modules(stack):
        if hasattr(module, "prepare"):
            model = module.prepare(model, options, subject)
    return model


def builds_on_host(stack):
    return any(getattr(module, "BUILDS_ON_HOST", False) for module, _ in modules(stack))


def split(batch, parts):
    """torch.tensor_split of every tensor; the larger parts first."""
    if parts == 1:
        return [batch]
    pieces = {name: tensor.tensor_split(parts) for name, tensor in batch.items()}
    return [{name: piece[index] for name, piece in pieces.items()} for index in range(parts)]


class Step:
    """One training step. What modules may change:

    micro_batches       how many parts a batch has
    last_pass           whether a pass is the step's last, where there are several
    around_step         functions that return a context manager: around the whole step
    around_forward      around forward and loss
    forward             (model, batch) -> (output, loss)
    objectives          functions loss -> what backward starts from
    before_update       functions that are called before the update; False: there is none
    optimizer_class, optimizer_options
    make_update         (step) -> what is called after backward; ordinary_update unless a module has its own
    passes              (forward_backward) -> loss; once(forward_backward) unless a module has its own
    saved_tensors       place -> hooks on what autograd saves: "offload" -> (pack, unpack); "compress" -> (pack, unpack) whose pack returns
                        the tensors that it made, a list, or None for a tensor that it leaves. Both together are composed, see chained
    before_step         functions of the step's number
    host_gradients      parameter -> its gradient, of those that were moved to the host
    updates_on_host     whether that is where they are needed

    During a step they may enter step.phase("optimizer_step"), for what they do between two passes, and call step.forget(parameter), or
    step.forward_only() in place of a pass: forward and loss of all parts without grad.
    """

    def __init__(self, subject, model, stack):
        self.subject, self.model = subject, model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.micro_batches = 1
        self.last_micro_batch = self.last_pass = True
        self.around_step, self.around_forward, self.objectives = [], [], []
        self.before_step, self.before_update = [], []
        self.saved_tensors = {}
        self.host_gradients, self.updates_on_host = {}, False
        self.forward = subject.forward
        self.optimizers = []
        self.optimizer_class = subject.optimizer_class
        self.optimizer_options = {"foreach": True, **subject.optimizer_options}
        self.make_update, self.passes = ordinary_update, once
        for module, options in modules(stack):
            if hasattr(module, "install"):
                module.install(self, options)
        if self.saved_tensors:
            hooks = chained(**self.saved_tensors)
            self.around_forward.append(lambda: torch.autograd.graph.saved_tensors_hooks(*hooks))
        self.update = self.make_update(self)

    def make_optimizer(self, parameters):
        optimizer = self.optimizer_class(parameters, **self.optimizer_options)
        self.optimizers.append(optimizer)
        return optimizer

    def forget(self, parameter):
        """Drops what the optimizer keeps of a parameter."""
        for optimizer in self.optimizers:
            optimizer.state.pop(parameter, None)

    def __call__(self, number, batch, phase, look=None):
        """phase(name, number): a context manager. look(output): sees the output of the first forward. Returns the loss."""
        self.phase = lambda name: phase(name, number)
        parts = split(batch, self.micro_batches)
        samples = [len(next(iter(part.values()))) for part in parts]

        def forward(index):
            nonlocal look
            self.last_micro_batch = index == len(parts) - 1
            with contextlib.ExitStack() as contexts:
                for context in self.around_forward:
                    contexts.enter_context(context())
                output, loss = self.forward(self.model, parts[index])
            if look is not None:
                look(output)
                look = None
            del output
            if len(parts) > 1 and not self.subject.loss_is_a_sum:
                even = samples[0] == samples[-1]
                loss = loss / len(parts) if even else loss * (samples[index] / sum(samples))
            return loss

        def forward_only():
            with phase("forward", number), torch.no_grad():
                loss = forward(0)
                for index in range(1, len(parts)):
                    loss += forward(index)
            return loss

        def one(index):
            with phase("forward", number):
                loss = forward(index)
                objective = loss
                for transform in self.objectives:
                    objective = transform(objective)
            with phase("backward", number):
                objective.backward()
            return loss

        def forward_backward():
            loss = one(0)
            if len(parts) > 1:
                loss = loss.detach()
            for index in range(1, len(parts)):
                loss += one(index).detach()
            return loss

        self.forward_only = forward_only
        with contextlib.ExitStack() as contexts:
            with phase("forward", number):  # where a step begins
                for function in self.before_step:
                    function(number)
                for context in self.around_step:
                    contexts.enter_context(context())
            loss = self.passes(forward_backward)
            with phase("optimizer_step", number):
                self.update()
        return loss


def once(forward_backward):
    return forward_backward()


def chained(offload=None, compress=None):
    """Hooks for torch.autograd.graph.saved_tensors_hooks, of which PyTorch itself has one pair in force at a time: what compress makes is
    offloaded, a tensor that it leaves too."""
    if compress is None:
        return offload
    pack_one, unpack_one = offload or (lambda tensor: tensor, lambda packed: packed)

    def pack(tensor):
        made = compress[0](tensor)
        if made is None:
            return None, pack_one(tensor)
        packed = []
        while made:
            packed.append(pack_one(made.pop(0)))
        return packed, None

    def unpack(both):
        packed, left = both
        return unpack_one(left) if packed is None else compress[1](*[unpack_one(one) for one in packed])

    return pack, unpack


def ordinary_update(step):
    optimizer = step.make_optimizer(step.parameters)

    def update():
        if all([function() is not False for function in step.before_update]):
            optimizer.step()
        optimizer.zero_grad()

    return update
