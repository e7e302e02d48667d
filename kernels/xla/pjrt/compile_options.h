// Options of a compilation, as the bytes of XLA's message CompileOptionsProto. XLA's schema is not
// part of the build: the few fields are written by their numbers.
#ifndef TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_
#define TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_

#include <span>
#include <string>
#include <string_view>

#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Returns `options` and those of the platform ("cpu", "tpu") without which numbers would be wrong.
// An option that is in `options` stays as it is.
//
// xla_allow_excess_precision = false: with it, roundings to bfloat16 between two operations are
// dropped. xla_cpu_enable_fast_min_max = false: with it, a maximum loses NaN, and with NaN the
// check for numbers that are not finite. xla_cpu_enable_fast_math = false.
Options WithExactNumbers(std::string_view platform, Options options);

// Returns the bytes for a program of one partition on each of the devices with these ids. A program
// of several is divided as its text states (Shardy).
std::string CompileOptionBytes(const Options& options, std::span<const int> device_ids);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_
