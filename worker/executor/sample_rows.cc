#include "worker/executor/sample_rows.h"

#include <cstddef>

#include "model/program/context_rows.h"

namespace troupe {

double SeenPairs(std::span<const int32_t> documents, int64_t samples, int64_t sequence_length) {
  if (documents.empty()) {
    const double length = static_cast<double>(sequence_length);
    return static_cast<double>(samples) * length * length / 2;
  }
  double pairs = 0;
  for (size_t row = 0; row < documents.size(); ++row) {
    pairs +=
        static_cast<double>(static_cast<int64_t>(row) % sequence_length - documents[row]) + 0.5;
  }
  return pairs;
}

std::vector<int32_t> RowsOfContextRank(int64_t samples, int64_t tokens, int64_t ranks,
                                       int64_t rank) {
  const model::ContextRows held = model::ContextRows::Of(tokens, ranks, rank);
  std::vector<int32_t> rows;
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (int64_t row = 0; row < held.rows; ++row) {
      rows.push_back(static_cast<int32_t>(sample * tokens + held.Position(row)));
    }
  }
  return rows;
}

void NumberSamples(int64_t step, int64_t first_slot, std::span<int32_t> numbers) {
  for (size_t i = 0; i < numbers.size(); i += 2) {
    numbers[i] = static_cast<int32_t>(step);
    numbers[i + 1] = static_cast<int32_t>(first_slot + static_cast<int64_t>(i) / 2);
  }
}

}  // namespace troupe
