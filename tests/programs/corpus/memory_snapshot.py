"""PyTorch's own record of the memory's history, kept, written and looked at.

Expected: ends well, exact
"""

import pathlib
import pickle
import tempfile

import torch

torch.cuda.memory._record_memory_history(max_entries=10000)
model = torch.nn.Linear(512, 512).cuda()
model(torch.randn(64, 512, device="cuda")).sum().backward()
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(str(path))
    snapshot = pickle.loads(path.read_bytes())
torch.cuda.memory._record_memory_history(enabled=None)
actions = {entry["action"] for trace in snapshot["device_traces"] for entry in trace}
assert {"alloc", "segment_alloc"} <= actions, actions
assert sum(segment["total_size"] for segment in snapshot["segments"]) == torch.cuda.memory_reserved()
