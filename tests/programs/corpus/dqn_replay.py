"""DQN with a replay buffer on the host, whose batch grows with it, a target network, and actions that are sometimes the best.

Expected: ends well, exact if (a network as small as this has values); how a card rounds
Truth: the CPU's run (batches and actions)
"""

import copy
import os
import random

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
random.seed(0)
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(8, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 4))
network = network.to(device)
target = copy.deepcopy(network)
optimizer = torch.optim.Adam(network.parameters())
replay, state = [], torch.zeros(8)
for step in range(60):
    if random.random() < 0.3:
        action = random.randrange(4)
    else:
        with torch.no_grad():
            action = network(state.to(device)).argmax().item()
    following = torch.roll(state, 1)
    following[action] += 1
    replay.append((state, action, float(action == step % 4), following))
    state = following
    if step % 10 != 9:
        continue
    batch = random.sample(replay, min(len(replay), 32))
    states, actions, rewards, followings = zip(*batch)
    states, followings = torch.stack(states).to(device), torch.stack(followings).to(device)
    print("size batch", tuple(states.shape), [one[1] for one in replay[-10:]])
    with torch.no_grad():
        wanted = torch.tensor(rewards, device=device) + 0.9 * target(followings).amax(1)
    value = network(states).gather(1, torch.tensor(actions, device=device)[:, None]).squeeze(1)
    loss = torch.nn.functional.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    target.load_state_dict(network.state_dict())
