#include "kernels/exchange/row_relayout.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/backend/op_sequence.h"

namespace troupe::kernels {

using model::ChunkAt;
using model::RankOfChunk;

RowRelayout::RowRelayout(const model::Program& program, const model::Op& op, size_t element_bytes) {
  const auto& relayout = std::get<model::RelayoutAttributes>(op.attributes);
  const model::Value& x = program.value(op.inputs[0]);
  purpose_ = relayout.purpose;
  const int ranks = program.mesh.degrees[model::Axis::kContext];
  const int own = program.mesh.coordinates[model::Axis::kContext];
  const int64_t samples = relayout.samples;
  // Bytes per chunk of one sample.
  const int64_t chunk = x.elements() / (2 * samples) * static_cast<int64_t>(element_bytes);
  bytes_ = static_cast<size_t>(samples * 2 * chunk);
  std::array<int, 2> destination{};  // rank that gets the chunk at each place of the input
  std::array<int, 2> source{};       // rank that sends the chunk at each place of the output
  std::array<int, 2> stays_at{};     // output place of an input chunk that stays
  for (int place = 0; place < 2; ++place) {
    const int leaves = ChunkAt(relayout.from(), ranks, own, place);
    const int arrives = ChunkAt(relayout.to(), ranks, own, place);
    destination[place] = RankOfChunk(relayout.to(), ranks, leaves);
    source[place] = RankOfChunk(relayout.from(), ranks, arrives);
    stays_at[place] = ChunkAt(relayout.to(), ranks, own, 0) == leaves ? 0 : 1;
  }
  // Blocks are in rank order, and the chunks within a block in ascending order, as on the other
  // side. The chunks of one place of all samples are contiguous.
  moves_.send_bytes.assign(static_cast<size_t>(ranks), 0);
  moves_.receive_bytes = moves_.send_bytes;
  const int64_t of_all_samples = samples * chunk;
  int64_t sent = 0, received = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int place = 0; place < 2; ++place) {
      if (destination[place] == rank && rank == own) {
        moves_.stay.push_back(
            {place * chunk, stays_at[place] * chunk, 2 * chunk, 2 * chunk, samples, chunk});
      } else if (destination[place] == rank) {
        moves_.pack.push_back({place * chunk, sent, 2 * chunk, chunk, samples, chunk});
        moves_.send_bytes[static_cast<size_t>(rank)] += static_cast<size_t>(of_all_samples);
        sent += of_all_samples;
      }
      if (source[place] == rank && rank != own) {
        moves_.unpack.push_back({received, place * chunk, chunk, 2 * chunk, samples, chunk});
        moves_.receive_bytes[static_cast<size_t>(rank)] += static_cast<size_t>(of_all_samples);
        received += of_all_samples;
      }
    }
  }
}

Status RowRelayout::Run(const char* input, char* output, char* send, char* receive,
                        Communicator* communicator) const {
  if (communicator == nullptr) {
    std::memcpy(output, input, bytes());
    return OkStatus();
  }
  return moves_.Run(input, output, send, receive, *communicator, purpose_);
}

}  // namespace troupe::kernels
