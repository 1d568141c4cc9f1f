"""A variational autoencoder by torch.distributions, whose checks of arguments read truths from the card.

Expected: ends well, unreliable (checks of arguments read truths that rest on the network)
"""

import torch
from torch.distributions import Independent, Normal, kl_divergence

encoder = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.Tanh(), torch.nn.Linear(256, 32)).cuda()
decoder = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.Tanh(), torch.nn.Linear(256, 784)).cuda()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for step in range(3):
    images = torch.rand(64, 784).cuda()
    mean, log_scale = encoder(images).chunk(2, -1)
    posterior = Independent(Normal(mean, log_scale.exp()), 1)
    prior = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
    likelihood = torch.distributions.Bernoulli(logits=decoder(posterior.rsample())).log_prob(images.round()).sum(-1)
    loss = (kl_divergence(posterior, prior) - likelihood).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
