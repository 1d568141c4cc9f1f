"""An evaluation that counts the correct answers on the card and prints the accuracy: an integer that rests on a network's output.

Expected: ends well, exact if (the integer is unknown, and only printed)
"""

import torch

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda().eval()
correct = total = 0
with torch.inference_mode():
    for batch in range(4):
        images, labels = torch.randn(32, 3, 32, 32).cuda(), torch.randint(10, (32,)).cuda()
        correct += (model(images).argmax(1) == labels).sum().item()
        total += len(labels)
print(f"accuracy {correct / total:.3f}")
