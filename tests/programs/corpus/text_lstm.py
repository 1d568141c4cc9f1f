"""A bidirectional LSTM that classifies texts, by cuDNN.

Expected: ends well, lower bound (cuDNN's workspaces)
"""

import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(2000, 64, padding_idx=0)
        self.lstm = torch.nn.LSTM(64, 128, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True)
        self.head = torch.nn.Linear(256, 4)

    def forward(self, tokens):
        states, _ = self.lstm(self.embed(tokens))
        return self.head(states.max(1).values)


model = Classifier().cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = torch.nn.functional.cross_entropy(model(torch.randint(2000, (16, 40)).cuda()), torch.randint(4, (16,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
