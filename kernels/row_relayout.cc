#include "kernels/row_relayout.h"

#include <cstring>

#include "kernels/op_sequence.h"

namespace troupe::kernels {

using model::ChunkAt;
using model::RankOfChunk;

RowRelayout::RowRelayout(const model::Program& program, const model::Op& op, size_t element_bytes) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  const model::RelayoutAttributes& relayout = attributes.relayout;
  const model::Value& x = program.value(op.inputs[0]);
  purpose_ = PurposeOf(attributes.purpose);
  ranks_ = program.mesh.degrees[model::Axis::kContext];
  rank_ = program.mesh.coordinates[model::Axis::kContext];
  samples_ = relayout.samples;
  chunk_bytes_ = static_cast<size_t>(x.elements() / (2 * samples_)) * element_bytes;
  send_bytes_.assign(static_cast<size_t>(ranks_), 0);
  receive_bytes_ = send_bytes_;
  const size_t of_all_samples = static_cast<size_t>(samples_) * chunk_bytes_;
  for (int place = 0; place < 2; ++place) {
    const int leaves = ChunkAt(relayout.from(), ranks_, rank_, place);
    const int arrives = ChunkAt(relayout.to(), ranks_, rank_, place);
    destination_[place] = RankOfChunk(relayout.to(), ranks_, leaves);
    source_[place] = RankOfChunk(relayout.from(), ranks_, arrives);
    stays_at_[place] = ChunkAt(relayout.to(), ranks_, rank_, 0) == leaves ? 0 : 1;
    if (destination_[place] != rank_) {
      send_bytes_[static_cast<size_t>(destination_[place])] += of_all_samples;
    }
    if (source_[place] != rank_) {
      receive_bytes_[static_cast<size_t>(source_[place])] += of_all_samples;
    }
  }
}

Status RowRelayout::Run(const char* input, char* output, char* send, char* receive,
                        Communicator* communicator) const {
  if (communicator == nullptr) {
    std::memcpy(output, input, bytes());
    return OkStatus();
  }
  // Blocks in the order of ranks, and in each its chunks in ascending order, as on the other side.
  char* block = send;
  for (int rank = 0; rank < ranks_; ++rank) {
    for (int place = 0; place < 2; ++place) {
      if (destination_[place] != rank) continue;
      for (int64_t sample = 0; sample < samples_; ++sample) {
        const char* const chunk = input + OffsetOf(sample, place);
        if (rank == rank_) {
          std::memcpy(output + OffsetOf(sample, stays_at_[place]), chunk, chunk_bytes_);
          continue;
        }
        std::memcpy(block, chunk, chunk_bytes_);
        block += chunk_bytes_;
      }
    }
  }
  TROUPE_RETURN_IF_ERROR(
      communicator->AllToAll(send, receive, send_bytes_, receive_bytes_, purpose_));
  const char* arrived = receive;
  for (int rank = 0; rank < ranks_; ++rank) {
    for (int place = 0; place < 2; ++place) {
      if (rank == rank_ || source_[place] != rank) continue;
      for (int64_t sample = 0; sample < samples_; ++sample) {
        std::memcpy(output + OffsetOf(sample, place), arrived, chunk_bytes_);
        arrived += chunk_bytes_;
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels
