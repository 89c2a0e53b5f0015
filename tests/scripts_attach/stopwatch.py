"""A training on a GPU that stops its own time: ms a step from idle device to idle device, after the first 20 steps.

In IEEE fp32 the steps are long enough for the host to run ahead: where it does not, its noise of 10 % is what is timed.
"""

import time

import torch
from torch.nn import functional as F
from torchvision.models import resnet18

STEPS, SKIPPED = 120, 20
torch.manual_seed(0)
torch.backends.cudnn.allow_tf32 = False
model = resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
images, labels = torch.rand(256, 3, 128, 128).cuda(), torch.randint(1000, (256,)).cuda()
for step in range(STEPS):
    if step == SKIPPED:
        torch.cuda.synchronize()
        began = time.perf_counter()
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()
torch.cuda.synchronize()
print("ms a step:", (time.perf_counter() - began) * 1000 / (STEPS - SKIPPED))
