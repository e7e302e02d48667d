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

#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

class Ranks {
 public:
  virtual ~Ranks() = default;

  // The operation as each rank has it, by partition.
  virtual const std::vector<Lowering>& lowerings() const = 0;
  int size() const { return static_cast<int>(lowerings().size()); }

  // Writes what `body` does for each rank, and returns its results, which have the same types on
  // all. If the texts are equal they are written once, else as branches of which a rank runs its
  // own. REQUIRES: `body` writes no collective.
  virtual std::vector<Tensor> Each(
      const std::function<std::vector<Tensor>(const Lowering&)>& body) = 0;

  // A scalar that is number `of(partition)` on each rank; a constant if it is equal on all.
  virtual Tensor Number(Element element, const std::function<double(int partition)>& of) = 0;

  // The contents of a value with the largest extents, zeros after a rank's own; and new contents of
  // the same form.
  virtual Tensor ReadPadded(model::ValueId value) = 0;
  virtual void WritePadded(model::ValueId value, const Tensor& tensor) = 0;

  Tensor EachOne(const std::function<Tensor(const Lowering&)>& body) {
    return Each([&](const Lowering& rank) { return std::vector<Tensor>{body(rank)}; })[0];
  }
  void EachWrites(const std::function<void(const Lowering&)>& body) {
    Each([&](const Lowering& rank) {
      body(rank);
      return std::vector<Tensor>();
    });
  }

  // The partitions of each group of this operation, in group order, and the size of a group.
  // REQUIRES: the operation is a collective of axes or of all ranks, which lies within the slice.
  Function::Groups Groups() const;
  int group_size() const;
  // This rank's index in its group.
  static int IndexOf(const Lowering& rank);
};

// Whether a collective has several ranks.
bool HasPeers(const Lowering& lowering);
// UNIMPLEMENTED, which names the value, if a rank has other extents of an input or output.
Status ExpectEqualExtents(const Lowering& lowering);

// The shape with the largest extents of the ranks.
Shape PaddedShape(const Ranks& ranks, model::ValueId value);
// x with zeros at the end of its dims; x without elements at the end of its dims.
Tensor PadTo(Function& text, const Tensor& x, const Shape& shape);
Tensor CutTo(Function& text, const Tensor& x, const Shape& shape);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_RANKS_H_
