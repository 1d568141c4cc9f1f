"""https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture, as in its example with GradScaler: forward and backward are
captured, the optimizer step is not. Needs a CUDA card, so tests/emulated compares it and tests/parity, on the CPU, does not."""

import sys
import unittest.mock

import torch

STACKS = BFLOAT16_STACKS = []


def looks_for_packed_sequences():
    """transformers does not read from the card while a graph is captured, and then takes sequences for packed: an explicit mask, and another
    attention kernel than in the warm-up. There are none: it is told so, as it finds by itself in every other step."""
    masks = sys.modules.get("transformers.masking_utils")
    return unittest.mock.patch.object(masks, "find_packed_sequence_indices", lambda _: None) if masks else unittest.mock.MagicMock()


def install(step, options):
    warmup, captured = int(options.get("warmup", 3)), {}

    def take_gradients_away():
        for parameter in step.parameters:
            parameter.grad = None

    def capture(forward_backward):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(warmup):
                take_gradients_away()
                forward_backward()
        torch.cuda.current_stream().wait_stream(side)
        take_gradients_away()
        captured["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured["graph"]), looks_for_packed_sequences():
            captured["loss"] = forward_backward().detach()
        captured["gradients"] = {parameter: parameter.grad for parameter in step.parameters if parameter.grad is not None}

    def replay(forward_backward):
        if not captured:
            capture(forward_backward)
        captured["graph"].replay()
        for parameter, gradient in captured["gradients"].items():
            parameter.grad = gradient
        return captured["loss"]

    step.passes = replay
