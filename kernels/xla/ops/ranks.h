// The ranks of a slice while one operation is lowered. All of them run one program, whose text is
// the same. Each rank has its own contents in every tensor, and a number that differs between ranks
// is an element of a constant table, chosen by the rank's number in the slice (its partition).
//
// The storage of a value has the largest extents that it has on any rank. Where a rank has fewer,
// zeros follow; they enter no number, because an operation reads and writes a rank's own extents.
#ifndef TROUPE_KERNELS_XLA_OPS_RANKS_H_
#define TROUPE_KERNELS_XLA_OPS_RANKS_H_

#include <functional>
#include <vector>

#include "kernels/xla/text/function.h"
#include "model/program/value.h"

namespace troupe::kernels::xla {

struct Lowering;  // an operation as one rank has it (lowering.h)

// Not thread-safe: its functions append to one text. They have no errors; a wrong shape ends the
// process (function.h).
class Ranks {
 public:
  virtual ~Ranks() = default;

  // The operation as each rank has it, by partition.
  virtual const std::vector<Lowering>& lowerings() const = 0;

  // Writes what `body` does for each rank, and returns its results, which have the same types on
  // all. If the texts are equal they are written once, else as branches of which a rank runs its
  // own. REQUIRES: `body` writes no collective.
  virtual std::vector<Tensor> Each(
      const std::function<std::vector<Tensor>(const Lowering&)>& body) = 0;
  // The same with one result, and with none.
  Tensor EachOne(const std::function<Tensor(const Lowering&)>& body) {
    return Each([&](const Lowering& rank) { return std::vector<Tensor>{body(rank)}; })[0];
  }
  void EachWrites(const std::function<void(const Lowering&)>& body) {
    Each([&](const Lowering& rank) {
      body(rank);
      return std::vector<Tensor>();
    });
  }

  // A scalar that is number `of(partition)` on each rank; a constant if it is equal on all.
  virtual Tensor Number(Element element, const std::function<double(int partition)>& of) = 0;

  // The contents of a value with the largest extents, zeros after a rank's own; and new contents of
  // the same form.
  virtual Tensor ReadPadded(model::ValueId value) = 0;
  virtual void WritePadded(model::ValueId value, const Tensor& tensor) = 0;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_RANKS_H_
