// The placement rule that most operations share. Each dim of each operand carries a letter (matmul:
// x "rk", w "nk", y "rn"); along every axis at most one letter is sharded:
//
//   operand that has the letter           must be Shard of that dim
//   operand that lacks it                 must be Copied, because each rank uses it for its own
//   part; operands that
//                                         carry no gradient (ids, weights of the loss) may be
//                                         Replicated
//   output that has the letter            is Shard of that dim
//   output that lacks it                  is Partial(sum): the letter was summed over
//
// and where no letter is sharded all operands are Replicated and so are the outputs. Partial
// operands are refused.
#ifndef TROUPE_MODEL_OPS_PLACEMENT_RULE_H_
#define TROUPE_MODEL_OPS_PLACEMENT_RULE_H_

#include <array>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "model/ops/rules.h"

namespace troupe::model {

struct Operand {
  const Value* value;
  std::string_view letters;  // one a dim
  bool has_gradient = true;
  std::optional<ShardHow>
      how;  // demanded of a sharded dim that is not rows; absent: equal in all such operands
};

// For each axis the sharded letter ('\0': none) and how it is cut.
class ShardedLetters {
 public:
  // `whole`: letters that may not be sharded ("h" of a norm).
  static StatusOr<ShardedLetters> Of(std::initializer_list<Operand> operands,
                                     std::string_view whole = {});

  // The placement of an output. `how` replaces the cut of sharded dims other than "r".
  Placement Output(std::string_view letters, std::optional<ShardHow> how = {}) const;

 private:
  std::array<char, kNumAxes> letter_{};
  std::array<ShardHow, kNumAxes> how_{};
};

// Where the load that a router's choices put on each sample lies, of rows of this placement: axes that
// cut samples leave parts of a sum.
Placement LoadPlacement(const Placement& rows);

// The axes over which the choices that `slots` has rows for are those of each rank's own experts: there
// rows of tokens are whole (Copied), and rows of the buffer Shard(0) by expert.
uint8_t SelectedAxes(const Value& slots);
// `value` without these axes, for the common rule. INVALID_ARGUMENT where it is not `due` on one.
StatusOr<Value> Apart(const Value& value, uint8_t axes, AxisPlacement due);
// `placement` with these axes.
Placement With(Placement placement, uint8_t axes, AxisPlacement on_them);

// INVALID_ARGUMENT unless `value` has this dtype and this many dims.
Status ExpectType(const Value& value, DType dtype, size_t dims);
// INVALID_ARGUMENT where `x` cannot travel as the collective has it.
Status CheckWire(const CollectiveAttributes& collective, const Value& x);
// INVALID_ARGUMENT unless dim `a_dim` of `a` and dim `b_dim` of `b` have the same extents.
Status ExpectSameExtent(const Value& a, int a_dim, const Value& b, int b_dim);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPS_PLACEMENT_RULE_H_
