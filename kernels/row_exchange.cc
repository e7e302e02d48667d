#include "kernels/row_exchange.h"

#include <cstring>

#include "kernels/op_sequence.h"

namespace troupe::kernels {

RowExchange::RowExchange(const model::Program& program, const model::Op& op, size_t element_bytes) {
  const auto& attributes = std::get<model::CollectiveAttributes>(op.attributes);
  to_rows_ = attributes.exchange.to_rows;
  purpose_ = PurposeOf(attributes.purpose);
  ranks_ = model::GroupSize(program.mesh, attributes.group);
  samples_ = attributes.exchange.samples;
  // The side that has all rows.
  const model::Value& all_rows = program.value(to_rows_ ? op.inputs[0] : op.outputs[0]);
  chunk_rows_ = all_rows.dims[0].local / (samples_ * 2 * ranks_);
  if (all_rows.segments.empty()) {
    segment_bytes_ = {static_cast<size_t>(all_rows.dims[1].local) * element_bytes};
  }
  for (const model::Segment& segment : all_rows.segments) {
    segment_bytes_.push_back(static_cast<size_t>(segment.local) * element_bytes);
  }
  for (const size_t bytes : segment_bytes_) part_bytes_ += bytes;
  block_bytes_ = static_cast<size_t>(samples_ * 2 * chunk_rows_) * part_bytes_;
}

Status RowExchange::Run(const char* input, char* output, char* send, char* receive,
                        Communicator* communicator) const {
  if (communicator == nullptr) {
    std::memcpy(output, input, bytes());
    return OkStatus();
  }
  char* const from = const_cast<char*>(input);
  for (int rank = 0; rank < ranks_; ++rank) {
    char* const block = send + static_cast<size_t>(rank) * block_bytes_;
    to_rows_ ? CopyRows(Direction::kPack, rank, from, block)
             : CopyColumns(Direction::kPack, rank, from, block);
  }
  TROUPE_RETURN_IF_ERROR(communicator->AllToAll(send, receive, block_bytes_, purpose_));
  for (int rank = 0; rank < ranks_; ++rank) {
    char* const block = receive + static_cast<size_t>(rank) * block_bytes_;
    to_rows_ ? CopyColumns(Direction::kUnpack, rank, output, block)
             : CopyRows(Direction::kUnpack, rank, output, block);
  }
  return OkStatus();
}

void RowExchange::CopyColumns(Direction direction, int rank, char* side, char* block) const {
  const int64_t rows = samples_ * 2 * chunk_rows_;
  for (int64_t row = 0; row < rows; ++row) {
    for (const size_t bytes : segment_bytes_) {
      char* const here = side + static_cast<size_t>(rank) * bytes;
      direction == Direction::kPack ? std::memcpy(block, here, bytes)
                                    : std::memcpy(here, block, bytes);
      block += bytes;
      side += static_cast<size_t>(ranks_) * bytes;
    }
  }
}

void RowExchange::CopyRows(Direction direction, int rank, char* side, char* block) const {
  const size_t bytes = static_cast<size_t>(chunk_rows_) * part_bytes_;
  for (int64_t sample = 0; sample < samples_; ++sample) {
    for (const int chunk : {rank, 2 * ranks_ - 1 - rank}) {
      char* const here = side + static_cast<size_t>(sample * 2 * ranks_ + chunk) * bytes;
      direction == Direction::kPack ? std::memcpy(block, here, bytes)
                                    : std::memcpy(here, block, bytes);
      block += bytes;
    }
  }
}

}  // namespace troupe::kernels
