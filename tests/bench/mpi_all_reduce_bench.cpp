// The same loop over MPI_Allreduce, for comparison.
// mpi_all_reduce_bench BYTES [BYTES …]     (under mpirun)
#include <mpi.h>

#include "tests/bench/all_reduce_loop.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int world_size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const ddp::bench::Contender contender{"mpi",
                                        [](float* data, std::size_t count) {
                                          MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count),
                                                        MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                                        },
                                        [] { MPI_Barrier(MPI_COMM_WORLD); }};
  ddp::bench::run_contenders({contender}, ddp::bench::sizes_from(argc, argv, 1), rank, world_size);
  MPI_Finalize();
  return 0;
}
