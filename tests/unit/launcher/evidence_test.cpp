#include "launcher/core/evidence.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

using ddp::launcher::is_crash_signal;
using ddp::launcher::tells_of_lost_peer;

namespace {

std::string traceback(const std::string& exception) {
  return "Traceback (most recent call last):\n"
         "  File \"train.py\", line 12, in <module>\n"
         "    dist.all_reduce(t)\n" +
         exception + "\n";
}

}  // namespace

TEST_CASE("evidence: libraries that say that the other end is gone") {
  for (const char* words :
       {"RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer "
        "[127.0.0.1]:6347",
        "RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:13734: "
        "Connection reset by peer",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] writev "
        "[10.0.0.2]:40001: Broken pipe",
        "RuntimeError: Connection reset by peer", "RuntimeError: Broken pipe",
        "torch.distributed.DistNetworkError: Connection reset by peer",
        "[W socket.cpp:697] [c10d] sendBytes failed on SocketImpl(fd=3, addr=[localhost]:4): "
        "Broken pipe",
        "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely "
        "closed. Did the remote server shutdown or crash?",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process "
        "exiting prematurely.",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:2006, remote process exited or "
        "there was a network error, NCCL version 2.21.5",
        "alpha:4242:4299 [1] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by "
        "remote peer beta<40001>",
        "terminate called after throwing an instance of 'ddp::v1::PeerLost'",
        "  what():  rank 1 on alpha is lost (exited with code 7), so call 3 (all_reduce) cannot be "
        "completed",
        "ddp: rank 2 on alpha has lost rank 1 and gave up, so call 3 cannot be completed",
        "error: the node beta is lost (its connection was closed)",
        "*** An error occurred in MPI_Allreduce: MPI_ERR_PROC_FAILED: Process Failure"}) {
    INFO(words);
    CHECK(tells_of_lost_peer("", words));
    CHECK(tells_of_lost_peer("", std::string("epoch 3\n") + words + "\nmore\n"));
    CHECK(tells_of_lost_peer(words, ""));
    CHECK(tells_of_lost_peer("", traceback(words)));
  }
}

TEST_CASE("evidence: words that only resemble them are no reason to wait") {
  for (const char* words :
       {"", "ValueError: bad label", "ConnectionResetError: [Errno 104] Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, "
        "'Connection reset by peer'))",
        "cat: write error: Broken pipe",
        "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "RuntimeError: Socket Timeout",
        "Segmentation fault (core dumped)",
        "epoch 3 of 10: the best checkpoint is lost (disk full)", "gloo is started",
        "NCCL version 2.21.5+cuda12.4"}) {
    INFO(words);
    CHECK_FALSE(tells_of_lost_peer(words, ""));
    CHECK_FALSE(tells_of_lost_peer("", words));
  }
}

TEST_CASE(
    "evidence: an exception that came first is the reason, whatever was lost on the way out") {
  const std::string lost =
      "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:1";
  const std::string during =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const std::string because =
      "\nThe above exception was the direct cause of the following exception:\n\n";
  CHECK_FALSE(tells_of_lost_peer("", traceback("ValueError: x") + lost));
  CHECK_FALSE(tells_of_lost_peer(lost, traceback("ValueError: x") + during + traceback(lost)));
  CHECK(tells_of_lost_peer("", traceback(lost) + because + traceback("TrainingError: step 3")));
  // Reported and survived earlier, it has no part in this.
  CHECK(tells_of_lost_peer(
      "", traceback("ValueError: skipped a sample") + "step 4\n" + traceback(lost)));
  // An exception of what carries the collectives doesn't always say why.
  CHECK(tells_of_lost_peer("", "NCCL WARN socketProgress: Connection closed by remote peer\n" +
                                   traceback("torch.distributed.DistBackendError: NCCL error")));
}

TEST_CASE("evidence: a loss that was reported and survived is no part of a later death") {
  const std::string survived = "gloo: Connection reset by peer, reconnecting\n";
  CHECK_FALSE(tells_of_lost_peer("", survived + "epoch 1\nepoch 2\nepoch 3\n"));
  CHECK_FALSE(tells_of_lost_peer("", survived + "epoch 1\nfatal: the disk is read-only\n"));
  CHECK_FALSE(tells_of_lost_peer("", survived + "epoch 1\nKeyError: 'loss'\n"));
}

TEST_CASE("evidence: what is said on the way out hides no loss") {
  const std::string lost =
      "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:1\n";
  CHECK(tells_of_lost_peer("", lost + "ERROR: training failed\ngood bye\n"));
  CHECK(tells_of_lost_peer(
      "",
      "epoch 3\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
      "  what():  NCCL error: ncclRemoteError: a call failed\n"
      "Exception raised from checkForNCCLErrors at ProcessGroupNCCL.cpp:1895\n"
      "frame #0: c10::Error::Error(c10::SourceLocation) + 0x57 (0x7f in libc10.so)\n"
      "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkAndThrowException() + 0x19e\n\n"));
}

TEST_CASE("evidence: PyTorch marks the lines of a traceback with their rank") {
  std::string text =
      "[rank3]: Traceback (most recent call last):\n"
      "[rank3]:   File \"train.py\", line 12, in <module>\n"
      "[rank3]: ValueError: x\n";
  CHECK_FALSE(tells_of_lost_peer("", text + "RuntimeError: Broken pipe\n"));
  CHECK(tells_of_lost_peer("", "[rank3]: RuntimeError: Broken pipe\n"));
  for (const char* odd : {"[rank", "[rank3", "[rank3]", "[rank3]:", "[rank]: x"}) {
    CHECK_FALSE(tells_of_lost_peer(odd, odd));
  }
}

TEST_CASE("evidence: any bytes are taken, and only the end of many") {
  std::string noise;
  for (int i = 0; i < 300'000; ++i) noise += static_cast<char>(i * 7);
  CHECK_FALSE(tells_of_lost_peer(noise, noise));
  CHECK(tells_of_lost_peer("", noise + "\nRuntimeError: Broken pipe"));
  CHECK_FALSE(tells_of_lost_peer("", "RuntimeError: Broken pipe\n" + noise));
  CHECK(tells_of_lost_peer("", std::string("RuntimeError: Broken pipe\r\0\n", 28)));
}

TEST_CASE("evidence: crashes are not how one is asked to stop") {
  CHECK(is_crash_signal(SIGSEGV));
  CHECK(is_crash_signal(SIGABRT));
  CHECK_FALSE(is_crash_signal(SIGTERM));
  CHECK_FALSE(is_crash_signal(SIGKILL));
  CHECK_FALSE(is_crash_signal(0));
}
