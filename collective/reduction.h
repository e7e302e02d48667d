// How two values become one in all_reduce and reduce_scatter: collectives take the reduction as a
// function and know nothing of kernels.
//
// A reduction must be commutative bit for bit (a with b gives the bits of b with a), so that every
// rank ends with the same bits; it need not be associative, because each algorithm fixes the order.
// The built-in ones are commutative for everything but the payload of a NaN.
#ifndef TROUPE_COLLECTIVE_REDUCTION_H_
#define TROUPE_COLLECTIVE_REDUCTION_H_

#include <cstddef>
#include <string_view>

namespace troupe {

struct Reduction {
  // accumulator[i] = accumulator[i] combined with other[i] for i < count. The two never overlap.
  // Called from the thread that waits or from the network's progress thread, one call at a time for
  // one operation.
  using Combine = void (*)(const void* state, void* accumulator, const void* other, size_t count);

  Combine combine = nullptr;
  const void* state = nullptr;  // handed to combine; outlives the operation
  size_t element_bytes = 0;
  std::string_view name;  // static text, part of the digest of operations

  // Where it is not 0: the bytes of an element as it travels. `pack` makes that form of elements,
  // `unpack` elements of it, and `other` of combine has it. Each rank's elements then go to the rank
  // that sums their block, which alone knows the sum before it is packed; what all_reduce gives is
  // packed and unpacked on every rank. unpack(pack(unpack(x))) is unpack(x), bit for bit.
  using Convert = void (*)(const void* from, void* to, size_t count);
  size_t wire_bytes = 0;
  Convert pack = nullptr;
  Convert unpack = nullptr;
};

Reduction SumFloat32();
Reduction SumFloat64();
// Each pairwise sum is made in float32 and rounded to nearest even.
Reduction SumBfloat16();
// Of float32, which travel as bfloat16, rounded to nearest even: sums are made in float32.
Reduction SumFloat32AsBfloat16();
// NaN wins over every number; +0 wins over -0.
Reduction MaxFloat32();

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_REDUCTION_H_
