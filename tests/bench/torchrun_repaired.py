"""torchrun of whichever PyTorch is installed, repaired where Python 3.11 broke it, for comparisons only.

    /usr/bin/python3 torchrun_repaired.py OPTIONS… PROGRAM…

PyTorch 1.13 looks for the value of --redirects and --tee by iterating over a flag class; since Python 3.11 that leaves
out the values 0 and 3, so that it finds None and dies before it starts a worker.
"""
from torch.distributed.elastic.multiprocessing import api
from torch.distributed.run import main


def destinations(text):
    """What --redirects and --tee mean: one digit for all local ranks, or `rank:digit` pairs."""
    if ":" not in text:
        return api.Std(int(text))
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(local_rank): api.Std(int(digit)) for local_rank, digit in pairs}


if api.Std.from_str("3") is None:
    api.Std.from_str = staticmethod(destinations)

main()
