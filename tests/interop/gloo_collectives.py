"""A PyTorch program as users write it, whose ranks use the collectives of gloo and say what they got.

    gloo_collectives.py FOLDER        under any launcher that sets torchrun's variables

Each rank leaves FOLDER/rank<r>.json.
"""
import json
import os
import sys

import torch
import torch.distributed as dist


def listening_ports():
    """Ports on which this very process listens."""
    own = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            own.add(target[len("socket:["):-1])
    ports = []
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for fields in map(str.split, list(lines)[1:]):
                if fields[3] == "0A" and fields[9] in own:
                    ports.append(int(fields[1].rpartition(":")[2], 16))
    return ports


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    got = {"rank": rank, "world": world, "torch": torch.__version__,
           "hosts_store": int(os.environ["MASTER_PORT"]) in listening_ports()}

    value = torch.full((1000,), float(rank + 1))
    dist.all_reduce(value)
    got["sum"] = [value[0].item(), value[-1].item()]

    # Every rank makes every group, in the same order, as the rules are.
    groups = [dist.new_group(list(range(first, world, 2))) for first in (0, 1)]
    value = torch.tensor([float(rank)])
    dist.all_reduce(value, group=groups[rank % 2])
    got["sum_of_half"] = value.item()

    value = torch.tensor([rank * 10])
    dist.broadcast(value, src=world - 1)
    got["broadcast"] = value.item()
    objects = [None] * world
    dist.all_gather_object(objects, {"from": rank, "text": "x" * rank})
    got["gathered"] = [item["from"] + len(item["text"]) for item in objects]

    for _ in range(3):
        dist.barrier()
    dist.barrier(group=groups[rank % 2])
    dist.destroy_process_group()
    got["initialized_after_destroy"] = dist.is_initialized()
    got["environment"] = {name: value for name, value in os.environ.items()
                          if name.startswith(("TORCH", "MASTER_", "NCCL_"))}
    with open(os.path.join(sys.argv[1], f"rank{rank}.json"), "w", encoding="utf-8") as out:
        json.dump(got, out)


if __name__ == "__main__":
    main()
