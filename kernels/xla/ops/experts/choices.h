// Choices of experts in a program's text. Whole numbers are exact. No formulation multiplies the
// rows of tokens by the number of experts; only integers of one choice are compared with all. The
// functions append to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_EXPERTS_CHOICES_H_
#define TROUPE_KERNELS_XLA_OPS_EXPERTS_CHOICES_H_

#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// x with as many elements of dim 0 as stated: a slice, or with zeros at its end.
Tensor WithRows(Function& text, const Tensor& x, int64_t rows);
// Σ counts, a scalar.
Tensor SumOf(Function& text, const Tensor& counts);
// x [R,…] with zeros in the rows where `kept` i1[R] is false, whatever they hold; and the rows that
// counts i32[C] cover, i1[R].
Tensor Masked(Function& text, const Tensor& x, const Tensor& kept);
Tensor Counted(Function& text, const Tensor& counts, int64_t rows);
// For each of i32[C] the sum of those before it.
Tensor SumsBefore(Function& text, const Tensor& counts);

// The numbers of i32[N] that equal 0, 1, … → i32[E].
Tensor CountsOfEach(Function& text, const Tensor& experts, int64_t count);
// i32[N] in ascending order, ties in theirs, and the index that each had.
struct Ascending {
  Tensor numbers, indices;
};
Ascending SortAscending(Function& text, const Tensor& numbers);
// `numbers` of such an order, put back to the indices.
Tensor AtIndices(Function& text, const Tensor& indices, const Tensor& numbers);

// The index among slots i32[R,k] of each of `count` slots → i32[count]; -1 for a slot that nothing
// has. No two choices have one slot; -1 is none.
Tensor ChoicesOfSlots(Function& text, const Tensor& slots, int64_t count);
// The token r of each such index r·k + j; -1 stays.
Tensor RowsOfChoices(Function& text, const Tensor& choices, int64_t k);
// Column `choice` of [R,k] → [R].
Tensor Column(Function& text, const Tensor& x, int64_t choice);
// Rows `rows` i32[N] of x [S,H] → [N,H]; zeros for row -1, whatever x holds.
Tensor RowsOrZeros(Function& text, const Tensor& x, const Tensor& rows);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_EXPERTS_CHOICES_H_
