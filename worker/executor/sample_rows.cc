#include "worker/executor/sample_rows.h"

#include <cstddef>

namespace troupe {

double SeenPairs(const std::vector<int32_t>& documents, int64_t sequence_length) {
  double pairs = 0;
  for (size_t row = 0; row < documents.size(); ++row) {
    pairs += static_cast<double>(static_cast<int64_t>(row) % sequence_length - documents[row]) + 0.5;
  }
  return pairs;
}

std::vector<int32_t> RowsOfContextRank(int64_t samples, int64_t tokens, int64_t ranks,
                                       int64_t rank) {
  std::vector<int32_t> rows;
  const int64_t chunk_rows = tokens / (2 * ranks);
  for (int64_t sample = 0; sample < samples; ++sample) {
    if (ranks == 1) {
      for (int64_t t = 0; t < tokens; ++t) rows.push_back(static_cast<int32_t>(sample * tokens + t));
      continue;
    }
    for (const int64_t chunk : {rank, 2 * ranks - 1 - rank}) {
      for (int64_t t = chunk * chunk_rows; t < (chunk + 1) * chunk_rows; ++t) {
        rows.push_back(static_cast<int32_t>(sample * tokens + t));
      }
    }
  }
  return rows;
}

}  // namespace troupe
