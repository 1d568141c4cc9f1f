"""https://arxiv.org/abs/2403.17919, algorithm 1, as https://github.com/OptimalScale/LMFlow switches layers; the state of layers that are no
longer trained is dropped."""

import numpy

STACKS = ["lisa,layers=1,interval=1", "checkpointing+lisa,layers=2,interval=2+fused-in-backward"]
BFLOAT16_STACKS = ["lisa,layers=1,interval=1"]


def install(step, options):
    layers, interval, seed = (int(options.get(name, default)) for name, default in (("layers", 2), ("interval", 20), ("seed", 0)))
    blocks = [list(block.parameters()) for block in step.subject.blocks(step.model)]
    outside = set(step.parameters) - {parameter for block in blocks for parameter in block}
    step.before_step.append(lambda number: number % interval or train_only(step, outside, blocks, sample(len(blocks), layers, seed + number)))


def sample(count, wanted, seed):
    random = numpy.random.RandomState(seed)
    numbers = list(range(count))
    for i in range(wanted):
        other = i + int(random.randint(0, 2**32, dtype=numpy.uint32)) % (count - i)
        numbers[i], numbers[other] = numbers[other], numbers[i]
    return numbers[:wanted]


def train_only(step, outside, blocks, chosen):
    trained = outside | {parameter for number in chosen for parameter in blocks[number]}
    for parameter in step.parameters:
        parameter.requires_grad_(parameter in trained)
        if parameter not in trained:
            step.forget(parameter)
