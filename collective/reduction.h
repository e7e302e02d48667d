// The functions with which all_reduce and reduce_scatter combine two values. Collectives take the
// reduction as a function and do not depend on kernels.
//
// A reduction must be bitwise commutative, so that every rank ends with the same bits. It need not
// be associative, because each algorithm fixes the order. The built-in reductions are commutative
// except for the payload of a NaN.
#ifndef TROUPE_COLLECTIVE_REDUCTION_H_
#define TROUPE_COLLECTIVE_REDUCTION_H_

#include <cstddef>
#include <string_view>

namespace troupe {

struct Reduction {
  // accumulator[i] = accumulator[i] combined with other[i], for i < count. The two arrays never
  // overlap. Called from the waiting thread or from the network's progress thread; one call at a
  // time per operation.
  using Combine = void (*)(const void* state, void* accumulator, const void* other, size_t count);

  Combine combine = nullptr;
  const void* state = nullptr;  // passed to combine; must outlive the operation
  size_t element_bytes = 0;
  std::string_view name;  // static text, part of the digest of operations

  // If not 0, the size in bytes of an element on the wire. `pack` converts elements to this wire
  // format, `unpack` converts back; `other` of combine is in the wire format. Each rank then sends
  // its elements to the rank that sums their block, so only that rank has the unpacked sum; the
  // result of all_reduce is packed and unpacked on every rank. unpack(pack(unpack(x))) equals
  // unpack(x) bit for bit.
  using Convert = void (*)(const void* from, void* to, size_t count);
  size_t wire_bytes = 0;
  Convert pack = nullptr;
  Convert unpack = nullptr;
};

Reduction SumFloat32();
Reduction SumFloat64();
// Each pairwise sum is computed in float32 and rounded to nearest even.
Reduction SumBfloat16();
// Sums float32 values that are sent as bfloat16, rounded to nearest even; sums are computed in
// float32.
Reduction SumFloat32AsBfloat16();
// A NaN takes precedence over every number; +0 over -0.
Reduction MaxFloat32();

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_REDUCTION_H_
