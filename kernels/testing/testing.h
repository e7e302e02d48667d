// Runs single operations and whole programs on any backend, for tests that compare results in
// float64.
#ifndef TROUPE_KERNELS_TESTING_TESTING_H_
#define TROUPE_KERNELS_TESTING_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

// Fresh random numbers for every test. The seed is printed; TROUPE_TEST_SEED repeats it.
class TestRandom {
 public:
  TestRandom();
  double Normal();                             // standard normal
  int64_t Integer(int64_t low, int64_t high);  // uniform in [low, high]
  std::vector<double> Normals(int64_t count, double scale = 1.0);
  // Rows of `experts` router logits. Any two of a row differ by at least 0.1, so that no choice is
  // close to a tie.
  std::vector<double> Logits(int64_t rows, int64_t experts);
  std::vector<double> Integers(int64_t count, int64_t low, int64_t high);
  // Document indices, as in Mask, for samples of `tokens` rows: some documents have one row, some
  // many.
  std::vector<double> Documents(int64_t samples, int64_t tokens);

 private:
  uint64_t key_;
  uint64_t next_ = 0;
};

// A value of a one-operation program and its contents before the run.
struct TestValue {
  model::DType dtype;
  std::vector<int64_t> extents;
  std::vector<double> numbers;  // empty: zeros
};

struct TestOp {
  model::OpKind kind;
  model::Attributes attributes;
  std::vector<TestValue> inputs;
  std::vector<TestValue> outputs;
  bool first_writer = false;
  int view_of_input = -1;  // the first output shares this input's storage
  model::MeshView mesh = {};
};

struct TestResult {
  std::vector<std::vector<double>> inputs, outputs;  // after the run
};

// Runs one op once. Inputs are rounded to their dtypes on every backend. Collective if
// communicators are given. Aborts the process on an error.
TestResult RunOp(Backend& backend, const TestOp& op, const RunOptions& options = {},
                 const FindCommunicator& find_communicator = nullptr);

// The largest |actual - expected| over the largest |expected| (at least 1e-30); infinity if only
// one of a pair is NaN or the sizes differ.
double RelativeError(const std::vector<double>& actual, const std::vector<double>& expected);

// Reads or writes the contents of a value as float64.
std::vector<double> ReadNumbers(ValueMemory& values, const model::Program& program,
                                model::ValueId value, int buffer = 0);
void WriteNumbers(ValueMemory& values, const model::Program& program, model::ValueId value,
                  const std::vector<double>& numbers, int buffer = 0);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_TESTING_TESTING_H_
