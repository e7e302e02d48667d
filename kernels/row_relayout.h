// What kRelayout moves: each rank has two chunks of every sample, and sends those that another rank is
// to have, to that rank alone. Elements are of any one size. Immutable, thread-safe.
#ifndef TROUPE_KERNELS_ROW_RELAYOUT_H_
#define TROUPE_KERNELS_ROW_RELAYOUT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowRelayout {
 public:
  // Of a kRelayout of `program`, with elements of `element_bytes`.
  RowRelayout(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, and of the output.
  size_t bytes() const { return static_cast<size_t>(samples_) * 2 * chunk_bytes_; }
  // Bytes of the input that go to each rank, and of the output that come from it; none to and from this
  // rank itself.
  const std::vector<size_t>& send_bytes() const { return send_bytes_; }
  const std::vector<size_t>& receive_bytes() const { return receive_bytes_; }

  // Moves `input` to `output` of all ranks; `send` and `receive`: working memory of bytes() each. A
  // null communicator is a group of one.
  Status Run(const char* input, char* output, char* send, char* receive,
             Communicator* communicator) const;

 private:
  // Of place `place` of sample `sample`, in input or output.
  size_t OffsetOf(int64_t sample, int place) const {
    return static_cast<size_t>(2 * sample + place) * chunk_bytes_;
  }

  Purpose purpose_;
  int ranks_, rank_;
  int64_t samples_;
  size_t chunk_bytes_ = 0;          // of one sample
  std::array<int, 2> destination_;  // of the chunk in each place of the input: a rank
  std::array<int, 2> source_;       // of the chunk in each place of the output
  std::array<int, 2> stays_at_;     // where a chunk of the input lies in the output, if it stays
  std::vector<size_t> send_bytes_, receive_bytes_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROW_RELAYOUT_H_
