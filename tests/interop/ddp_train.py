"""A PyTorch DistributedDataParallel training as users write it: nothing in it knows who launched it.

One convolution, one fully connected layer, random images, SGD with momentum, DistributedSampler, gloo. Each rank writes
the sum and a digest of its final parameters to OUT/rank<r>.json. With --crash-rank R, rank R dies in the middle of the
first epoch of the first attempt, and only then.
"""

import argparse
import hashlib
import json
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.fc = torch.nn.Linear(8 * 14 * 14, 10)

    def forward(self, x):
        return self.fc(torch.flatten(torch.relu(self.conv(x)), 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--crash-rank", type=int, default=-1)
    args = parser.parse_args()
    torch.set_num_threads(1)

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    data = torch.Generator().manual_seed(7)
    images = torch.randn(256, 3, 16, 16, generator=data)
    labels = torch.randint(0, 10, (256,), generator=data)
    dataset = TensorDataset(images, labels)
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)

    torch.manual_seed(rank)  # different on purpose: DDP must broadcast rank 0's
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    steps, first, last = 0, None, None
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            if rank == args.crash_rank and attempt == 0 and steps == 2:
                with open(os.path.join(args.out, "crashed"), "w") as mark:
                    mark.write(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            first = loss.item() if first is None else first
            last = loss.item()
            steps += 1

    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    digest = hashlib.sha256(flat.numpy().tobytes()).hexdigest()
    record = {"rank": rank, "world": world, "attempt": attempt, "steps": steps, "first": first, "last": last,
              "digest": digest, "port": os.environ["MASTER_PORT"]}
    with open(os.path.join(args.out, "rank%d.json" % rank), "w") as out:
        json.dump(record, out)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
