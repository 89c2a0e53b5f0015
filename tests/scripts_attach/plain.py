"""A training as people write it."""

import argparse

import torch
from net import BATCH, disturbed, images, network
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
asked = parser.parse_args()

torch.manual_seed(3)
model = network()
optimizer = torch.optim.SGD(model.parameters(), asked.lr, momentum=0.9)
for inputs, targets in DataLoader(images(), batch_size=BATCH, shuffle=True):
    optimizer.zero_grad()
    loss = disturbed(F.cross_entropy(model(inputs), targets))
    loss.backward()
    optimizer.step()
print("all done")
