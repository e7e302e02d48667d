// Which rows of samples a rank has, and what attention sees in them. Pure.
#ifndef TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_
#define TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

// Query-key pairs of samples of T tokens with documents [samples·T], by the convention of model FLOPs:
// L²/2 of a document of L tokens. No documents: each sample is one.
double SeenPairs(std::span<const int32_t> documents, int64_t samples, int64_t sequence_length);

// The rows, among those of `samples` samples of `tokens` tokens, of rank `rank` of `ranks`: a head and
// a tail chunk of each sample (model/program/placement.h, kHeadTail).
std::vector<int32_t> RowsOfContextRank(int64_t samples, int64_t tokens, int64_t ranks, int64_t rank);

// Fills `numbers` [samples, 2] with the step and the slots of consecutive samples from `first_slot` on.
void NumberSamples(int64_t step, int64_t first_slot, std::span<int32_t> numbers);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_SAMPLE_ROWS_H_
