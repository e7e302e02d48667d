// The rows of samples that a rank has, and the query-key pairs that attention sees in them. Pure.
#ifndef TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_
#define TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

// Query-key pairs of `samples` samples of T tokens with documents [samples·T], by the convention of
// model FLOPs: L²/2 for a document of L tokens. Without documents each sample is one document.
double SeenPairs(std::span<const int32_t> documents, int64_t samples, int64_t sequence_length);

// The rows of rank `rank` of `ranks` among those of `samples` samples of `tokens` tokens: a head
// chunk and a tail chunk of each sample (model/program/placement.h, kHeadTail).
std::vector<int32_t> RowsOfContextRank(int64_t samples, int64_t tokens, int64_t ranks,
                                       int64_t rank);

// Fills `numbers` [samples, 2] with the step and the slot of each of consecutive samples from
// `first_slot` on.
void NumberSamples(int64_t step, int64_t first_slot, std::span<int32_t> numbers);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_
