"""Four threads that serve requests with a model each, on streams of their own.

Expected: ends well, exact
"""

import threading

import torch

results = []


def serve(index):
    with torch.cuda.stream(torch.cuda.Stream()), torch.inference_mode():
        model = torch.nn.Linear(256, 256).cuda()
        for _ in range(5):
            x = model(torch.randn(16, 256, device="cuda"))
        torch.cuda.current_stream().synchronize()
        results.append((index, tuple(x.shape)))


for index in range(4):
    thread = threading.Thread(target=serve, args=(index,))
    thread.start()
    thread.join()
assert len(results) == 4
