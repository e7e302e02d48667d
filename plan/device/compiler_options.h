// The options of the compiler of XLA's devices, as a plan states them: NAME=VALUE.
//
// A job names groups of options, which differ between kinds of devices and between versions of the
// plugin, and single options. Both are resolved once, for the kind of device that a job is placed
// on; the plugin gets what the plan states. Pure.
#ifndef TROUPE_PLAN_DEVICE_COMPILER_OPTIONS_H_
#define TROUPE_PLAN_DEVICE_COMPILER_OPTIONS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A named group, with the options that some kinds of devices get. The same name may have several
// rows.
struct CompilerOptionGroup {
  std::string_view name;
  std::string_view effect;                    // one sentence, for docs/xla.md
  std::span<const std::string_view> kinds;    // names of devices as their plugin gives them
  std::span<const std::string_view> options;  // NAME=VALUE
};

std::span<const CompilerOptionGroup> CompilerOptionGroups();

// The part of an option "NAME=VALUE" before the first "=".
std::string_view NameOfOption(std::string_view option);

// Returns the options for devices of `kind`, ascending, each name once: those that keep numbers
// exact (model/program/exact_number_options.h), then the groups, then the job's single options, of
// which the later replaces the earlier. None for devices without a compiler of whole programs
// (DeviceTraits::compiles_programs), or whose model is not known because no worker announced them.
//
// Errors: FAILED_PRECONDITION if the devices lack a group, with the groups that they have;
// INVALID_ARGUMENT if two groups state one option differently. REQUIRES: `xla` is valid
// (plan/validate/validate_xla.h).
StatusOr<std::vector<std::string>> ResolveCompilerOptions(const v1::XlaSpec& xla,
                                                          const v1::DeviceKind& kind);

// Returns why no kind of device can have all groups of `xla`; empty if one can.
std::string WhyNoDeviceHasGroups(const v1::XlaSpec& xla);

// The names of all groups in the order of the table, "a, b".
std::string KnownCompilerOptionGroups();

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_COMPILER_OPTIONS_H_
