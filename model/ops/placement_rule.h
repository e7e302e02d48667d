// The placement rule that most operations share. Each dim of each operand carries a letter (matmul:
// x "rk", w "nk", y "rn"); along every axis at most one letter is sharded:
//
//   operand that has the letter    must be Shard of that dim
//   operand that lacks it          must be Copied, because each rank uses it for its own part;
//                                  operands without a gradient (ids, weights of the loss) may be
//                                  Replicated
//   output that has the letter     is Shard of that dim
//   output that lacks it           is Partial(sum): the letter was summed over
//
// If no letter is sharded, all operands must be Replicated and so are the outputs. Partial operands
// are rejected.
#ifndef TROUPE_MODEL_OPS_PLACEMENT_RULE_H_
#define TROUPE_MODEL_OPS_PLACEMENT_RULE_H_

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "model/program/op_rules.h"

namespace troupe::model {

struct Operand {
  const Value* value;
  std::string_view letters;  // one per dim
  bool has_gradient = true;
  std::optional<ShardHow>
      how;  // required for sharded dims that are not rows; absent: equal in all such operands
};

// For each axis, the sharded letter ('\0': none) and its ShardHow.
class ShardedLetters {
 public:
  // `whole`: letters that may not be sharded ("h" of a norm).
  static StatusOr<ShardedLetters> Of(std::initializer_list<Operand> operands,
                                     std::string_view whole = {});

  // The placement of an output. `how` replaces the ShardHow of sharded dims other than "r".
  Placement Output(std::string_view letters, std::optional<ShardHow> how = {}) const;

 private:
  // Sets the letter of axis `a` and its ShardHow, and returns an operand that shards it; null: none
  // does.
  StatusOr<const Operand*> FindLetter(int a, std::span<const Operand> operands,
                                      std::string_view whole);
  // Checks an operand that is not sharded along axis `a`, along which `by` is; null: none is.
  Status CheckUnsharded(int a, const Operand& operand, const Operand* by) const;

  std::array<char, kNumAxes> letter_{};
  std::array<ShardHow, kNumAxes> how_{};
};

// The placement of the per-sample load of a router's choices, for rows of this placement: axes that
// split samples give partial sums.
Placement LoadPlacement(const Placement& rows);

// The axes over which `slots` covers only the choices of each rank's own experts. On them rows of
// tokens are whole (Copied), and rows of the buffer are Shard(0) by expert.
uint8_t SelectedAxes(const Value& slots);
// `value` without these axes, for the common rule. INVALID_ARGUMENT if its placement on one of them
// is not `due`.
StatusOr<Value> Apart(const Value& value, uint8_t axes, AxisPlacement due);
// `placement` with these axes set to `on_them`.
Placement With(Placement placement, uint8_t axes, AxisPlacement on_them);

// INVALID_ARGUMENT unless `value` has this dtype and number of dims.
Status ExpectType(const Value& value, DType dtype, size_t dims);
// INVALID_ARGUMENT if the collective cannot send `x` in its wire format.
Status CheckWire(DType wire, ReduceKind reduce, const Value& x);
// INVALID_ARGUMENT unless dim `a_dim` of `a` and dim `b_dim` of `b` have the same extents.
Status ExpectSameExtent(const Value& a, int a_dim, const Value& b, int b_dim);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPS_PLACEMENT_RULE_H_
