// Grouped matmuls of experts with their rows, whose number is known only at run time.
//
// float32 uses oneDNN's sgemm, which takes any number of rows. bfloat16 matmuls are prepared for
// fixed numbers of rows, so an expert's rows are cut into tiles of kRowTiles.
#ifndef TROUPE_KERNELS_CPU_EXPERTS_GROUPED_MATMUL_H_
#define TROUPE_KERNELS_CPU_EXPERTS_GROUPED_MATMUL_H_

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/cpu/instruction.h"
#include "kernels/cpu/matmul.h"

namespace troupe::kernels::cpu {

inline constexpr std::array<int64_t, 5> kRowTiles = {256, 64, 16, 4, 1};
using TileMatmuls = std::array<Matmul*, kRowTiles.size()>;

struct GroupedMatmulArgs {
  MatmulKind kind;
  bool bfloat16;
  const char* a;  // rows: x or dy
  const char* b;  // the experts' weights, or x for a weight gradient
  char* c;
  const int32_t* counts;  // the expert of count i is i mod experts
  int64_t num_counts, experts, k, n;
  char* scratch;
  TileMatmuls tiles;  // for bfloat16
};

std::unique_ptr<Instruction> MakeGroupedMatmulInstruction(const GroupedMatmulArgs& args,
                                                          Overwrites overwrites, int threads);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_EXPERTS_GROUPED_MATMUL_H_
