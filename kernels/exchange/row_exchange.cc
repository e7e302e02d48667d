#include "kernels/exchange/row_exchange.h"

#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/backend/op_sequence.h"

namespace troupe::kernels {
namespace {

RowMove Reversed(RowMove move) {
  std::swap(move.from, move.to);
  std::swap(move.from_stride, move.to_stride);
  return move;
}

}  // namespace

RowExchange::RowExchange(const model::Program& program, const model::Op& op, size_t element_bytes) {
  const auto& attributes = std::get<model::ExchangeHeadsAttributes>(op.attributes);
  const bool to_rows = attributes.to_rows;
  purpose_ = attributes.purpose;
  const int ranks = model::GroupSize(program.mesh, attributes.group);
  const int64_t samples = attributes.samples;
  // The side with all rows.
  const model::Value& all_rows = program.value(to_rows ? op.inputs[0] : op.outputs[0]);
  const int64_t chunk_rows = all_rows.dims[0].local / (samples * 2 * ranks);
  // Bytes of one rank's part of each segment of a row.
  const auto element = static_cast<int64_t>(element_bytes);
  std::vector<int64_t> segments;
  if (all_rows.segments.empty()) segments = {all_rows.dims[1].local * element};
  for (const model::Segment& segment : all_rows.segments)
    segments.push_back(segment.local * element);
  const int64_t part = std::accumulate(segments.begin(), segments.end(), int64_t{0});
  const int64_t rows = samples * 2 * chunk_rows;
  const int64_t block = rows * part;  // bytes that one rank sends to another
  bytes_ = static_cast<size_t>(ranks * block);
  moves_.send_bytes.assign(static_cast<size_t>(ranks), static_cast<size_t>(block));
  moves_.receive_bytes = moves_.send_bytes;

  // Row moves between each side and the blocks; a block is packed row by row.
  std::vector<RowMove> columns, chunks;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t all_columns = 0, block_columns = 0;
    for (const int64_t bytes : segments) {
      columns.push_back({.from = all_columns + rank * bytes,
                         .to = rank * block + block_columns,
                         .from_stride = ranks * part,
                         .to_stride = part,
                         .rows = rows,
                         .row_bytes = bytes});
      all_columns += ranks * bytes;
      block_columns += bytes;
    }
    const int64_t chunk_bytes = chunk_rows * part;
    int64_t place = 0;
    for (const int64_t chunk : {rank, 2 * ranks - 1 - rank}) {
      chunks.push_back({.from = chunk * chunk_bytes,
                        .to = rank * block + place++ * chunk_bytes,
                        .from_stride = 2 * ranks * chunk_bytes,
                        .to_stride = 2 * chunk_bytes,
                        .rows = samples,
                        .row_bytes = chunk_bytes});
    }
  }
  moves_.pack = to_rows ? chunks : columns;
  for (const RowMove& move : to_rows ? columns : chunks) moves_.unpack.push_back(Reversed(move));
}

Status RowExchange::Run(const char* input, char* output, char* send, char* receive,
                        Communicator* communicator) const {
  if (communicator == nullptr) {
    std::memcpy(output, input, bytes());
    return OkStatus();
  }
  return moves_.Run(input, output, send, receive, *communicator, purpose_);
}

}  // namespace troupe::kernels
