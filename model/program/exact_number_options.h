// The options of XLA's compiler without which numbers would be wrong. A job cannot state them
// otherwise, and every compilation gets them.
#ifndef TROUPE_MODEL_PROGRAM_EXACT_NUMBER_OPTIONS_H_
#define TROUPE_MODEL_PROGRAM_EXACT_NUMBER_OPTIONS_H_

#include <string_view>

namespace troupe::model {

struct ExactNumberOption {
  std::string_view name;
  std::string_view platform;  // plugins that know it: "cpu", "tpu"; empty: all
};

// All are false.
//
// xla_allow_excess_precision: with it, roundings to bfloat16 between two operations are dropped.
// xla_cpu_enable_fast_min_max: with it, a maximum loses NaN, and with NaN the check for numbers
// that are not finite.
// xla_cpu_use_xnnpack: with it, the plugin for processors keeps a packed copy of an operand of some
// matmuls by its address (xla-cpu-pjrt 0.0.1), and multiplies by old weights once they have been
// updated in place.
inline constexpr ExactNumberOption kExactNumberOptions[] = {
    {"xla_allow_excess_precision", ""},
    {"xla_cpu_enable_fast_math", "cpu"},
    {"xla_cpu_enable_fast_min_max", "cpu"},
    {"xla_cpu_use_xnnpack", "cpu"},
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_EXACT_NUMBER_OPTIONS_H_
