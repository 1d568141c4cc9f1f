"""The area under a curve and the best threshold of scores from the host, with ties, beside precision and recall at some ranks.

Expected: ends well, exact if (which of equal values kthvalue takes is not specified)
Truth: the CPU's run (thresholds and counts)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
labels = (torch.rand(1000) < 0.2).to(device)
scores = ((torch.rand(1000) * 40).floor() / 40).to(device)
scores = (scores + 0.25 * labels).clamp(max=1)
order = scores.argsort(descending=True, stable=True)
ranked, found = scores[order], labels[order].cumsum(0)
last = torch.cat([(ranked.diff() != 0).nonzero().squeeze(1), torch.tensor([999], device=device)])
true, false = found[last], last + 1 - found[last]
print("size thresholds", len(last), int(true[-1]), int(false[-1]))
area = torch.trapezoid(true.double() / true[-1], false.double() / false[-1])
best = (true / true[-1] - false / false[-1]).argmax()
print("size best", int(best), round(area.item(), 4), int((scores >= ranked[last[best]]).sum()))
for k in (10, 100):
    print("size at", k, labels[order[:k]].sum().item())
kth = scores.kthvalue(900)
print("size above", (scores > kth.values).sum().item(), scores.median().item(), scores.mode().values.item())
