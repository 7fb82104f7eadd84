// A process that nobody launched: alone, in C++17.
#include <cstdio>
#include <ddp/ddp.hpp>
#include <vector>

int main() {
  try {
    ddp::ProcessGroup group = ddp::init_process_group();
    std::vector<float> values{1, 2, 3};
    group.all_reduce(values, ddp::ReduceOp::avg);
    group.store().set("key", "value");
    try {
      group.broadcast(values, 1);
    } catch (const ddp::InvalidUse& error) {
      std::printf("%s %s\n", ddp::version(), group.backend().c_str());
      return values[2] == 3.0F ? 0 : 1;
    }
  } catch (const ddp::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
