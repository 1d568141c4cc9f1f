"""`peakbench trace` of stock training scripts of whole models: the categories at the peak are those of our own plugins' cases to the byte, but
for what the scripts do otherwise. docs/how-to/programs.md has the table.
"""

import json
import subprocess

from traced_programs import PEAKBENCH, PYTHON, TracedPrograms

# torchvision's ViT-L/16. Its labels (two integers of 8 bytes) are made on the card, and no model is called with them.
VIT = """
import torch, torchvision
model = torchvision.models.vit_l_16().cuda()
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
x = torch.randn(2, 3, 224, 224, device="cuda")
y = torch.randint(0, 1000, (2,), device="cuda")
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
print(torch.cuda.max_memory_allocated())
"""
# transformers' Qwen2.5-0.5B by its configuration. Its labels are its input ids themselves (2 times 256 integers of 8 bytes).
QWEN = """
import torch
from transformers import AutoModelForCausalLM, Qwen2Config
config = Qwen2Config(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
                     max_position_embeddings=32768, tie_word_embeddings=True, rope_theta=1e6, rms_norm_eps=1e-6, use_cache=False)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
ids = torch.randint(0, 151936, (2, 256), device="cuda")
for _ in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
print(torch.cuda.max_memory_allocated())
"""


class Models(TracedPrograms):
    def of_plugin(self, model, *options):
        done = subprocess.run([PEAKBENCH, "run", "--model", model, "--strategy", "baseline", "--device", "emulated:h100-80gb", "--batch", "2", *options,
                               "--repetitions", "0", "--no-report", "--out", "plugin"], cwd=self.folder, capture_output=True, text=True, timeout=600, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads((self.folder / "plugin/run.json").read_text(encoding="utf-8"))["cases"][0]["memory"]

    def check(self, script, differences, model, *options):
        done = self.trace(PYTHON, self.write(script))
        stock, ours = self.case()["memory"], self.of_plugin(model, *options)
        self.assertEqual(stock["peak_allocated_bytes"], int(done.stdout))
        self.assertEqual(sum(stock["at_peak"].values()), int(done.stdout))
        self.assertEqual(stock["peak_phase"], ours["peak_phase"])
        at_peak, expected = stock["at_peak"], ours["at_peak"]
        slack = at_peak.pop("allocator_slack") - expected.pop("allocator_slack")  # depends on what was freed before
        self.assertLess(abs(slack), 0.002 * stock["peak_allocated_bytes"])
        for category, difference in differences.items():
            expected[category] = expected.get(category, 0) + difference
        nonzero = [{category: size for category, size in one.items() if size} for one in (at_peak, expected)]
        self.assertEqual(*nonzero)

    def test_vit(self):
        self.check(VIT, {"kept": 16}, "vit-l-16")

    def test_qwen(self):
        self.check(QWEN, {"input": -2 * 256 * 8}, "qwen2.5-0.5b", "--seq", "256")
