"""PyTorch's own TCPStore server, alone: prints the port and PyTorch's version, serves until stdin ends."""
import datetime
import sys

import torch
from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", 0 if torch.__version__ >= "2" else int(sys.argv[1]), None, True,
                 datetime.timedelta(seconds=60), wait_for_workers=False)
print(store.port, torch.__version__, "libuv" if getattr(store, "libuvBackend", False) else "poll", flush=True)
sys.stdin.read()
