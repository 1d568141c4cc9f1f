"""A memory snapshot of stock PyTorch, imported: the peak, what was reserved, and what each line of the script holds there are what PyTorch
itself counted meanwhile, from the first allocation on and from the middle, with every setting of the allocator, in each protocol of pickle.
"""

import json
import os
import pickle
import sqlite3
import subprocess

from given import ORACLE, PEAKBENCH

CARD = "h100-80gb"
# The snapshot is made by the script, which says what PyTorch counted. Sizes are no multiples, and of those that no block is split for.
SCRIPT = """
import sys
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(1000, 3001), torch.nn.GELU(), torch.nn.Linear(3001, 1000)).cuda()

late = sys.argv[2] == "late"
record = lambda: torch.cuda.memory._record_memory_history(stacks=sys.argv[3], skip_actions=sys.argv[4:])
if not late:
    record()
before = torch.ones(300, 1001, device="cuda")
freed = torch.ones(77, 1001, device="cuda")
if late:
    record()
    torch.cuda.reset_peak_memory_stats()
net = model()
optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
del freed
kept = []
for step in range(3):
    x = torch.randn(513, 1000, device="cuda")
    kept.append(torch.empty(19 * 2**20 + step * 2**19, dtype=torch.uint8, device="cuda"))  # LINE
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del x, loss
del net, optimizer, before
torch.cuda.memory._dump_snapshot(sys.argv[1])
print("FIGURES", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated())
"""
RUNS = [("early", "all", ""), ("early", "all", "", "free_completed"), ("late", "python", ""), ("early", "python", "expandable_segments:True"), ("late", "all", "max_split_size_mb:21"),
        ("early", "python", "roundup_power2_divisions:4"), ("late", "all", "roundup_power2_divisions:[2:1,16:8,>:2]")]


def record(peakbench, python, folder, when, stacks, allocator, skipped):
    """(the snapshot, what PyTorch counted)"""
    script, snapshot = folder / "train.py", folder / f"{when}-{len(allocator)}-{len(skipped)}.pickle"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [peakbench, "emulate", "--card", CARD, "--", python, script, snapshot, when, stacks, *skipped]
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": allocator}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=120)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES")]
    if done.returncode or not lines:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return snapshot, [int(word) for word in lines[0].split()[1:]]


def imported(peakbench, snapshot, out):
    done = subprocess.run([peakbench, "import", snapshot, "--output", out], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return run, sqlite3.connect(out / run["cases"][0]["ranks"][0]["trace"])


def bytes_of_line(trace):
    """What the script's marked line holds at the peak."""
    line = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if "# LINE" in text)
    query = """SELECT coalesce(sum(e.block_bytes), 0) FROM allocations a JOIN events e ON e.id = a.event JOIN peaks p ON p.space = e.space
               JOIN frames f ON f.id = e.stack JOIN files n ON n.id = f.file
               WHERE a.event <= p.event AND a.last_event > p.event AND n.name LIKE '%/train.py' AND f.line = ?"""
    return trace.execute(query, [line]).fetchone()[0]


def problems_of(peakbench, python, folder, when, stacks, allocator, *skipped):
    snapshot, (peak, reserved, at_end) = record(peakbench, python, folder, when, stacks, allocator, skipped)
    run, trace = imported(peakbench, snapshot, folder / f"{snapshot.stem}-run")
    memory, found = run["cases"][0]["memory"], []

    def expect(what, ours, theirs):
        print(f"{when} {allocator or 'default'}: {what} {ours:,}, PyTorch {theirs:,}")
        if ours != theirs:
            found.append(f"{when} {allocator or 'default'}: {what} {ours:,}, PyTorch {theirs:,}")

    expect("peak", memory["peak_allocated_bytes"], peak)
    expect("reserved", memory["peak_reserved_bytes"], reserved)
    count = trace.execute("SELECT events FROM trace").fetchone()[0]
    alive = "SELECT sum(e.block_bytes) FROM allocations a JOIN events e ON e.id = a.event WHERE a.last_event = ?"
    expect("at the end", trace.execute(alive, [count]).fetchone()[0], at_end)
    # All three are alive at the peak, which is in the last update; a block may be what is left of a segment.
    largest = [19 * 2**20 + step * 2**19 for step in range(3)]
    if not sum(largest) <= bytes_of_line(trace) < sum(largest) + 3 * 2**20:
        found.append(f"{when} {allocator}: the line holds {bytes_of_line(trace):,} bytes, it asked for {sum(largest):,}")
    if ("from_before" in run["settings"]) != (when == "late"):
        found.append(f"{when}: {run['settings']}")
    if run["cases"][0]["model"]["id"] != "train.py":
        found.append(f"{when}: it is called {run['cases'][0]['model']}")
    return found, snapshot


def problems_of_protocols(peakbench, folder, snapshot):
    """Whatever Python wrote it with, and cut anywhere, or with code in it: one sentence, and nothing is run."""
    data, found, peaks = pickle.loads(snapshot.read_bytes()), [], set()
    for protocol in range(2, 6):
        again = folder / f"protocol{protocol}.pickle"
        again.write_bytes(pickle.dumps(data, protocol=protocol))
        run, _ = imported(peakbench, again, folder / f"protocol{protocol}")
        peaks.add(run["cases"][0]["memory"]["peak_allocated_bytes"])
    if len(peaks) != 1:
        found.append(f"protocols give the peaks {peaks}")
    marker, bad = folder / "marker", folder / "bad.pickle"

    class Attack:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    whole = snapshot.read_bytes()
    for content, says in [
        (whole[: len(whole) // 2], "ends in the middle"),
        (b"", "is empty"),
        (pickle.dumps({**data, "segments": [Attack()]}), "would run code (posix.system)"),
        (pickle.dumps([1, 2]), "no memory snapshot"),
    ]:
        bad.write_bytes(content)
        done = subprocess.run([peakbench, "import", bad, "--output", folder / "bad"], capture_output=True, text=True, timeout=60)
        if done.returncode != 2 or says not in done.stderr or len(done.stderr.splitlines()) != 1 or (folder / "bad").exists():
            found.append(f"{says}: exit status {done.returncode}, {done.stderr}")
    if marker.exists():
        found.append("a pickle's code was run")
    return found


def test_import(tmp_path):
    found = []
    for setting in RUNS:
        problems, snapshot = problems_of(PEAKBENCH, ORACLE, tmp_path, *setting)
        found += problems
    found += problems_of_protocols(PEAKBENCH, tmp_path, snapshot)
    assert not found
