// Products of a bank of experts over the rows of each: run-time extents.
//
// float32 goes to the library's sgemm, which takes any number of rows. bfloat16 products are
// prepared for a number of rows, so that an expert's rows are cut into tiles of kRowTiles.
#ifndef TROUPE_KERNELS_CPU_GROUPED_MATMUL_H_
#define TROUPE_KERNELS_CPU_GROUPED_MATMUL_H_

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/cpu/instruction.h"
#include "kernels/cpu/matmul.h"

namespace troupe::kernels::cpu {

inline constexpr std::array<int64_t, 5> kRowTiles = {256, 64, 16, 4, 1};
using TileProducts = std::array<Product*, kRowTiles.size()>;

struct GroupedProductArgs {
  ProductKind kind;
  bool bfloat16;
  const char* a;  // rows: x or dy
  const char* b;  // the bank, or x of a weight gradient
  char* c;
  const int32_t* counts;  // the expert of count i is i mod experts
  int64_t num_counts, experts, k, n;
  char* scratch;
  TileProducts tiles;  // of bfloat16
};

std::unique_ptr<Instruction> MakeGroupedProduct(const GroupedProductArgs& args, Overwrites overwrites,
                                                int threads);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_GROUPED_MATMUL_H_
