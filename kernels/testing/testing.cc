#include "kernels/testing/testing.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/check.h"
#include "base/random.h"
#include "kernels/backend/plain_program.h"
#include "kernels/numerics/value_encoding.h"

namespace troupe::kernels {

TestRandom::TestRandom() {
  const char* given = std::getenv("TROUPE_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("TROUPE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  key_ = RandomKey(seed, "kernels test");
}

double TestRandom::Normal() { return troupe::Normal(key_, next_++); }

int64_t TestRandom::Integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Uniform(key_, next_++) * static_cast<double>(high - low + 1));
}

std::vector<double> TestRandom::Normals(int64_t count, double scale) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = scale * Normal();
  return numbers;
}

std::vector<double> TestRandom::Logits(int64_t rows, int64_t experts) {
  std::vector<double> logits(rows * experts);
  for (int64_t r = 0; r < rows; ++r) {
    double* row = logits.data() + r * experts;
    for (int64_t e = 0; e < experts; ++e) {
      row[e] =
          0.3 * static_cast<double>(e - experts / 2) + 0.1 * static_cast<double>(Integer(0, 9)) / 5;
    }
    for (int64_t e = experts - 1; e > 0; --e) std::swap(row[e], row[Integer(0, e)]);
  }
  return logits;
}

std::vector<double> TestRandom::Integers(int64_t count, int64_t low, int64_t high) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = static_cast<double>(Integer(low, high));
  return numbers;
}

std::vector<double> TestRandom::Documents(int64_t samples, int64_t tokens) {
  std::vector<double> documents;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t mean = Integer(1, tokens);
    int64_t begin = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      if (Integer(1, mean) == 1) begin = t;
      documents.push_back(static_cast<double>(begin));
    }
  }
  return documents;
}

TestResult RunOp(Backend& backend, const TestOp& test, const RunOptions& options,
                 const FindCommunicator& find_communicator) {
  model::Program program = PlainProgram();
  program.mesh = test.mesh;
  model::Op op{.kind = test.kind, .attributes = test.attributes, .first_writer = test.first_writer};
  for (const TestValue& value : test.inputs) {
    op.inputs.push_back(AddPlainValue(program, value.dtype, value.extents,
                                      "input" + std::to_string(op.inputs.size())));
  }
  for (const TestValue& value : test.outputs) {
    op.outputs.push_back(AddPlainValue(program, value.dtype, value.extents,
                                       "output" + std::to_string(op.outputs.size())));
  }
  if (test.view_of_input >= 0) {
    program.values[op.outputs[0]].view_of = op.inputs[test.view_of_input];
  }
  AddPlainOp(program, op);

  const model::MemoryPlan plan = PlainPlan(program);
  auto executable = backend.Prepare(program, plan, find_communicator);
  TROUPE_CHECK_OK(executable.status());
  TROUPE_CHECK_OK((*executable)->Connect());
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    if (!test.inputs[i].numbers.empty()) {
      WriteNumbers(**executable, program, op.inputs[i], test.inputs[i].numbers);
    }
  }
  for (size_t i = 0; i < test.outputs.size(); ++i) {
    if (!test.outputs[i].numbers.empty()) {
      WriteNumbers(**executable, program, op.outputs[i], test.outputs[i].numbers);
    }
  }
  TROUPE_CHECK_OK((*executable)->Run(0, model::Piece::kForward, 0, options));
  TestResult result;
  for (const model::ValueId id : op.inputs) {
    result.inputs.push_back(ReadNumbers(**executable, program, id));
  }
  for (const model::ValueId id : op.outputs) {
    result.outputs.push_back(ReadNumbers(**executable, program, id));
  }
  return result;
}

double RelativeError(const std::vector<double>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 1e-30;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(actual[i]) != std::isnan(expected[i])) return INFINITY;
    if (std::isnan(expected[i])) continue;
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
  }
  return difference / largest;
}

std::vector<double> ReadNumbers(ValueMemory& values, const model::Program& program,
                                model::ValueId value, int buffer) {
  std::vector<std::byte> bytes(program.value(value).bytes());
  TROUPE_CHECK_OK(values.Read(value, buffer, bytes));
  std::vector<double> numbers(program.value(value).elements());
  Decode(program.value(value).dtype, bytes.data(), static_cast<int64_t>(numbers.size()),
         numbers.data());
  return numbers;
}

void WriteNumbers(ValueMemory& values, const model::Program& program, model::ValueId value,
                  const std::vector<double>& numbers, int buffer) {
  std::vector<std::byte> bytes(program.value(value).bytes());
  TROUPE_CHECK(static_cast<int64_t>(numbers.size()) == program.value(value).elements());
  Encode(program.value(value).dtype, numbers.data(), static_cast<int64_t>(numbers.size()),
         bytes.data());
  TROUPE_CHECK_OK(values.Write(value, buffer, bytes));
}

}  // namespace troupe::kernels
