#include "kernels/cpu/experts/grouped_matmul.h"

#include <omp.h>

#include <cstring>
#include <vector>

namespace troupe::kernels::cpu {
namespace {

class GroupedMatmul : public Instruction {
 public:
  GroupedMatmul(const GroupedMatmulArgs& args, Overwrites overwrites, int threads)
      : args_(args), overwrites_(overwrites), threads_(threads), written_(args.experts) {}

  Status Run(const RunOptions& options) override {
    omp_set_num_threads(threads_);  // for parallel regions of this thread, which oneDNN opens
    const int64_t element = args_.bfloat16 ? 2 : 4;
    const bool is_weight = args_.kind == MatmulKind::kWeightGradient;
    const int64_t a_row = (args_.kind == MatmulKind::kForward ? args_.k : args_.n) * element;
    const int64_t other_row = (args_.kind == MatmulKind::kForward ? args_.n : args_.k) * element;
    const int64_t matrix = args_.n * args_.k;
    const bool accumulates = Accumulates(overwrites_, options);
    written_.assign(written_.size(), accumulates);
    int64_t row = 0;
    for (int64_t i = 0; i < args_.num_counts; ++i) {
      const int64_t expert = i % args_.experts;
      const int64_t count = args_.counts[i];
      if (count == 0) continue;
      const char* a = args_.a + row * a_row;
      // Operands b and c: the experts' weights and rows; or, for a weight gradient, rows and the
      // experts' float32 gradients.
      const char* b = is_weight ? args_.b + row * other_row : args_.b + expert * matrix * element;
      char* c = is_weight ? args_.c + expert * matrix * 4 : args_.c + row * other_row;
      TROUPE_RETURN_IF_ERROR(RunRows(count, a, a_row, b, is_weight ? other_row : 0, c,
                                     is_weight ? 0 : other_row,
                                     is_weight && written_[expert] != 0));
      written_[expert] = 1;
      row += count;
    }
    if (!is_weight) return OkStatus();
    for (int64_t expert = 0; expert < args_.experts; ++expert) {
      if (!written_[expert]) std::memset(args_.c + expert * matrix * 4, 0, matrix * 4);
    }
    return OkStatus();
  }

 private:
  Status RunRows(int64_t count, const char* a, int64_t a_step, const char* b, int64_t b_step,
                 char* c, int64_t c_step, bool accumulate) {
    if (!args_.bfloat16) {
      return Float32Rows({args_.kind, false, count, args_.k, args_.n}, a, b, c, accumulate);
    }
    for (size_t tile = 0; tile < kRowTiles.size(); ++tile) {
      const int64_t rows = kRowTiles[tile];
      for (; count >= rows; count -= rows) {
        TROUPE_RETURN_IF_ERROR(args_.tiles[tile]->Run(a, b, c, accumulate, args_.scratch));
        a += rows * a_step;
        b += rows * b_step;
        c += rows * c_step;
        accumulate = args_.kind == MatmulKind::kWeightGradient;
      }
    }
    return OkStatus();
  }

  const GroupedMatmulArgs args_;
  const Overwrites overwrites_;
  const int threads_;
  std::vector<char> written_;  // by expert: already holds a sum
};

}  // namespace

std::unique_ptr<Instruction> MakeGroupedMatmulInstruction(const GroupedMatmulArgs& args,
                                                          Overwrites overwrites, int threads) {
  return std::make_unique<GroupedMatmul>(args, overwrites, threads);
}

}  // namespace troupe::kernels::cpu
