"""A BERT classifier of transformers on padded batches, by an attention mask from the host.

Expected: ends well, exact
"""

import torch
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(vocab_size=500, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, num_labels=3)
model = BertForSequenceClassification(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
lengths = torch.tensor([32, 20, 11, 5])
mask = (torch.arange(32)[None] < lengths[:, None]).long()
for step in range(3):
    tokens = torch.randint(500, (4, 32)) * mask
    out = model(input_ids=tokens.cuda(), attention_mask=mask.cuda(), labels=torch.randint(3, (4,)).cuda())
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
