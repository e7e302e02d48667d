#include "kernels/backend/burn_in.h"

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "kernels/backend/plain_program.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;
using model::ValueId;

// The operands' numbers repeat with these periods. They are prime, so that the rows of an operand
// start at every phase of its period.
constexpr int64_t kLeftPeriod = 61, kRightPeriod = 67, kCopyPeriod = 8191;
constexpr int64_t kLeftTurn = 3, kRightTurn = 5;
// Three sums of 16384 terms of magnitude at most 16 · 16 stay below 2^24.
constexpr int64_t kGreatest = 16, kExtentMax = 16384;
constexpr int kStageRepeatsMax = 3;

std::vector<float> SmallIntegers(uint64_t key, int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t draw = UniformBits(key, static_cast<uint64_t>(i)) % (2 * kGreatest + 1);
    numbers.push_back(static_cast<float>(static_cast<int64_t>(draw) - kGreatest));
  }
  return numbers;
}

// Element (r, c) of a matmul operand is numbers[(r + turn · c) mod period].
std::vector<BFloat16> Operand(const std::vector<float>& numbers, int64_t turn, int64_t extent) {
  std::vector<BFloat16> operand;
  operand.reserve(static_cast<size_t>(extent * extent));
  const auto period = static_cast<int64_t>(numbers.size());
  for (int64_t r = 0; r < extent; ++r) {
    for (int64_t c = 0; c < extent; ++c) {
      operand.push_back(ToBFloat16(numbers[static_cast<size_t>((r + turn * c) % period)]));
    }
  }
  return operand;
}

// The expected results, computed for any position.
class Known {
 public:
  explicit Known(const BurnInOptions& options)
      : left_(SmallIntegers(RandomKey(options.seed, "left"), kLeftPeriod)),
        right_(SmallIntegers(RandomKey(options.seed, "right"), kRightPeriod)),
        copied_(SmallIntegers(RandomKey(options.seed, "copied"), kCopyPeriod)),
        results_(static_cast<size_t>(kLeftPeriod * kRightPeriod)) {
    for (int64_t a = 0; a < kLeftPeriod; ++a) {
      for (int64_t b = 0; b < kRightPeriod; ++b) {
        float sum = 0;
        for (int64_t r = 0; r < options.extent; ++r) {
          sum += left_[static_cast<size_t>((r + a) % kLeftPeriod)] *
                 right_[static_cast<size_t>((r + b) % kRightPeriod)];
        }
        results_[static_cast<size_t>(a * kRightPeriod + b)] = sum;
      }
    }
  }

  std::vector<BFloat16> Left(int64_t extent) const { return Operand(left_, kLeftTurn, extent); }
  std::vector<BFloat16> Right(int64_t extent) const { return Operand(right_, kRightTurn, extent); }
  float Copied(int64_t i) const { return copied_[static_cast<size_t>(i % kCopyPeriod)]; }
  float Result(int64_t row, int64_t column) const {
    return results_[static_cast<size_t>(row * kLeftTurn % kLeftPeriod * kRightPeriod +
                                        column * kRightTurn % kRightPeriod)];
  }

 private:
  std::vector<float> left_, right_, copied_, results_;
};

Status ReadFloats(ValueMemory& values, ValueId value, std::vector<float>& numbers) {
  return values.Read(value, 0, std::as_writable_bytes(std::span(numbers)));
}

}  // namespace

StatusOr<BurnInReport> BurnIn(Backend& backend, const BurnInOptions& options) {
  const int64_t extent = options.extent, elements = options.copy_elements;
  if (extent < 1 || extent > kExtentMax)
    return InvalidArgument("extent is {}, must be from 1 to {}", extent, kExtentMax);
  if (elements < 1) return InvalidArgument("copy_elements is {}, must be at least 1", elements);
  model::Program program = PlainProgram();
  const ValueId left = AddPlainValue(program, DType::kBFloat16, {extent, extent}, "left");
  const ValueId right = AddPlainValue(program, DType::kBFloat16, {extent, extent}, "right");
  const ValueId matmul = AddPlainValue(program, DType::kFloat32, {extent, extent}, "matmul");
  const ValueId source = AddPlainValue(program, DType::kFloat32, {elements}, "source");
  const ValueId copy = AddPlainValue(program, DType::kFloat32, {elements}, "copy");
  AddPlainOp(program, {.kind = OpKind::kMatmulGradWeight,
                       .inputs = {left, right},
                       .outputs = {matmul},
                       .first_writer = true});
  AddPlainOp(
      program,
      {.kind = OpKind::kAccumulate, .inputs = {source}, .outputs = {copy}, .first_writer = true});
  const model::MemoryPlan plan = PlainPlan(program);
  TROUPE_ASSIGN_OR_RETURN(const auto executable, backend.Prepare(program, plan, nullptr));
  TROUPE_RETURN_IF_ERROR(executable->Connect());

  const Known known(options);
  const auto write = [&](ValueId value, const auto& numbers) {
    return executable->Write(value, 0, std::as_bytes(std::span(numbers)));
  };
  TROUPE_RETURN_IF_ERROR(write(left, known.Left(extent)));
  TROUPE_RETURN_IF_ERROR(write(right, known.Right(extent)));
  std::vector<float> copied(static_cast<size_t>(elements)),
      results(static_cast<size_t>(extent * extent));
  for (int64_t i = 0; i < elements; ++i) copied[static_cast<size_t>(i)] = known.Copied(i);
  TROUPE_RETURN_IF_ERROR(write(source, copied));

  BurnInReport report;
  const auto end = std::chrono::steady_clock::now() + options.at_least;
  do {
    // Consecutive rounds use different repeat counts, so that stale results are detected.
    const int repeats = 1 + static_cast<int>(report.rounds % kStageRepeatsMax);
    for (int i = 0; i < repeats; ++i) {
      TROUPE_RETURN_IF_ERROR(
          executable->Run(0, model::Piece::kForward, 0, {.first_microbatch = i == 0}));
    }
    TROUPE_RETURN_IF_ERROR(ReadFloats(*executable, matmul, results));
    TROUPE_RETURN_IF_ERROR(ReadFloats(*executable, copy, copied));
    ++report.rounds;
    const auto times = static_cast<float>(repeats);
    for (int64_t row = 0; row < extent; ++row) {
      for (int64_t column = 0; column < extent; ++column) {
        const float is = results[static_cast<size_t>(row * extent + column)];
        const float must = times * known.Result(row, column);
        if (is == must) continue;
        return DataLoss(
            "burn-in, round {}: element [{}, {}] of a matmul of {} rows is {}, must be {}",
            report.rounds, row, column, extent, is, must);
      }
    }
    for (int64_t i = 0; i < elements; ++i) {
      const float is = copied[static_cast<size_t>(i)], must = times * known.Copied(i);
      if (is == must) continue;
      return DataLoss("burn-in, round {}: element {} of a copied array is {}, must be {}",
                      report.rounds, i, is, must);
    }
    report.flops += repeats * 2.0 * static_cast<double>(extent * extent * extent);
    report.bytes += (3.0 * repeats - 1) * sizeof(float) * static_cast<double>(elements);
  } while (std::chrono::steady_clock::now() < end);
  return report;
}

}  // namespace troupe::kernels
