// Options of a compilation, as the bytes of XLA's message CompileOptionsProto
// (proto/xla/compile_options.proto). All functions are pure.
#ifndef TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_
#define TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Returns `options` and those of the platform ("cpu", "tpu") without which numbers would be wrong
// (model/program/exact_number_options.h). An option that is in `options` stays as it is.
Options WithExactNumbers(std::string_view platform, Options options);

// Returns the options as a plan and a receipt state them: NAME=VALUE, ascending.
std::vector<std::string> OptionTexts(const Options& options);

// Returns the options of such texts. true and false become flags, anything else a text: the plugin
// reads numbers from texts. REQUIRES: each has the form NAME=VALUE.
Options ParseOptionTexts(std::span<const std::string> texts);

// Returns the bytes for a program of one partition on each of the devices with these ids. A program
// of several is divided as its text states (Shardy). Equal options and devices have equal bytes.
std::string CompileOptionBytes(const Options& options, std::span<const int> device_ids);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_COMPILE_OPTIONS_H_
