"""DETR's loss with a matching on the host: costs are copied, pairs chosen one by one, and the loss is taken of the pairs.

Expected: ends well, exact if (which pairs are chosen; there are as many in any case)
Truth: a twin that pairs queries and boxes in order
"""

import os

import torch

torch.manual_seed(0)
in_order = "PROGRAM_TWIN" in os.environ
layer = torch.nn.TransformerDecoderLayer(256, 4, 512, dropout=0.0, batch_first=True)
decoder = torch.nn.TransformerDecoder(layer, 2).cuda()
queries = torch.nn.Parameter(torch.randn(50, 256, device="cuda"))
classes, places = torch.nn.Linear(256, 21).cuda(), torch.nn.Linear(256, 4).cuda()
optimizer = torch.optim.AdamW([*decoder.parameters(), queries, *classes.parameters(), *places.parameters()], lr=1e-4)


def pairs_of(cost):
    pairs = []
    for box in range(cost.shape[1]):
        if in_order:
            pairs.append((box, box))
        else:
            taken = {query for query, _ in pairs}
            row = sorted((value, query) for query, value in enumerate(cost[:, box].tolist()) if query not in taken)
            pairs.append((row[0][1], box))
    return torch.tensor(pairs)


for step in range(2):
    memory = torch.randn(2, 400, 256).cuda()
    out = decoder(queries.expand(2, -1, -1), memory)
    logits, boxes = classes(out), places(out).sigmoid()
    loss = 0
    for picture, count in enumerate((5, 3)):
        labels, wanted = torch.randint(20, (count,)).cuda(), torch.rand(count, 4).cuda()
        with torch.no_grad():
            cost = torch.cdist(boxes[picture], wanted, p=1) - logits[picture].softmax(-1)[:, labels]
        query, box = pairs_of(cost.cpu()).cuda().T
        target = torch.full((50,), 20, device="cuda")
        target[query] = labels[box]
        loss = loss + torch.nn.functional.cross_entropy(logits[picture], target)
        loss = loss + torch.nn.functional.l1_loss(boxes[picture][query], wanted[box])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
