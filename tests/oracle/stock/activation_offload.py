"""torchtune's OffloadActivations, without and with a stream of its own, as https://github.com/pytorch/torchtune has it in
torchtune/training/_activation_offloading.py; a weight is recognised by its storage, a transposed one too."""

import torch

STACKS = ["activation-offload", "checkpointing+activation-offload", "lora+activation-offload,min_bytes=4096+fused-in-backward"]
BFLOAT16_STACKS = ["activation-offload"]


def install(step, options):
    pin_memory, min_bytes = options.get("pin_memory", "true") == "true", int(options.get("min_bytes", 1024))
    overlap, storages = int(options.get("overlap", 0)), weights(step.model)

    def takes(tensor):
        return tensor.nbytes >= min_bytes and tensor.untyped_storage().data_ptr() not in storages

    hooks = overlapped_hooks(takes, overlap) if overlap else plain_hooks(takes, pin_memory)
    step.saved_tensors["offload"] = hooks


def weights(model):
    return {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}


def plain_hooks(takes, pin_memory):
    def pack(tensor):
        if not takes(tensor):
            return None, tensor
        packed = torch.empty_like(tensor, device="cpu", pin_memory=pin_memory and tensor.is_cuda)
        packed.copy_(tensor)
        return tensor.device, packed

    def unpack(packed):
        device, tensor = packed
        return tensor if device is None else tensor.to(device, non_blocking=pin_memory)

    return pack, unpack


def overlapped_hooks(takes, overlap):
    computing, copying = torch.cuda.default_stream(), torch.cuda.Stream()
    outgoing, incoming, read = {}, {}, {}  # by number: (tensor, event), tensor, event
    state = {"number": 0, "pass": -1, "node": None}

    def release_outgoing(before):
        for number in [number for number in outgoing if number < before]:
            computing.wait_event(outgoing.pop(number)[1])

    def release_incoming(numbers):
        for number in numbers:
            if number in read:
                copying.wait_event(read.pop(number))
            incoming.pop(number, None)

    def pack(tensor):
        number = state["number"]
        state["number"] += 1
        if not takes(tensor) or not tensor.is_cuda:
            return None, tensor
        release_outgoing(number - overlap + 1)
        copying.wait_stream(computing)
        with torch.cuda.stream(copying):
            host = torch.empty_like(tensor, device="cpu", pin_memory=True)
            host.copy_(tensor, non_blocking=True)
        outgoing[number] = (tensor, copying.record_event())
        return number, host

    def unpack(packed):
        number, host = packed
        if number is None:
            return host
        begin_node()
        if number in outgoing:
            return outgoing[number][0]
        with torch.cuda.stream(copying):
            tensor = host.to("cuda", non_blocking=True)
        computing.wait_stream(copying)
        incoming[number] = tensor
        return tensor

    def begin_node():
        if state["pass"] != torch._C._current_graph_task_id():
            state["pass"] = torch._C._current_graph_task_id()
            torch.autograd.variable.Variable._execution_engine.queue_callback(end)
        node = torch._C._current_autograd_node()
        if state["node"] is node:
            return
        state["node"] = node
        earlier = list(incoming)

        def node_has_run(inputs, _):
            for number in [number for number in incoming if number not in earlier]:
                tensor = incoming[number]
                if any(one is not None and one.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr() for one in inputs):
                    tensor.record_stream(computing)
                    del incoming[number]
                else:
                    read[number] = computing.record_event()
                del tensor
            release_outgoing(state["number"])
            release_incoming(earlier)

        node.register_hook(node_has_run)

    def end():
        release_incoming(list(incoming))
        state["node"] = None

    return pack, unpack
