#include "plan/validate/validate_xla.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "model/program/exact_number_options.h"
#include "plan/device/compiler_options.h"

namespace troupe {
namespace {

constexpr size_t kShownBytes = 200;  // at most, of an option in a violation

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns what is wrong with `option` by itself; empty if nothing is.
std::string_view Fault(std::string_view option) {
  const std::string_view name = NameOfOption(option);
  if (name.starts_with("--")) return "begins with dashes: state the name alone";
  if (name.empty() || !std::ranges::all_of(name, IsNameByte) || name.size() + 1 >= option.size())
    return "is not NAME=VALUE, where NAME has letters, digits and _ only";
  return "";
}

void CheckGroups(const v1::XlaSpec& xla, Violations* violations) {
  bool all_known = true;
  for (int i = 0; i < xla.option_groups_size(); ++i) {
    const std::string& name = xla.option_groups(i);
    if (std::ranges::count(CompilerOptionGroups(), name, &CompilerOptionGroup::name) > 0) continue;
    all_known = false;
    violations->AddUnknownWord(fmt::format("xla.option_groups[{}]", i), name,
                               KnownCompilerOptionGroups());
  }
  if (!all_known) return;
  if (const std::string why = WhyNoDeviceHasGroups(xla); !why.empty())
    violations->Add("xla.option_groups", "cannot be resolved: {}", why);
}

}  // namespace

void ValidateXla(const v1::XlaSpec& xla, Violations* violations) {
  CheckGroups(xla, violations);
  std::set<std::string_view> names;
  for (int i = 0; i < xla.options_size(); ++i) {
    const std::string field = fmt::format("xla.options[{}]", i);
    const std::string_view option = xla.options(i), name = NameOfOption(option);
    const std::string_view shown = option.substr(0, kShownBytes);
    if (const std::string_view fault = Fault(option); !fault.empty()) {
      violations->Add(field, "is \"{}\", which {}", shown, fault);
    } else if (!names.insert(name).second) {
      violations->Add(field, "is \"{}\", but an earlier entry states {} too", shown, name);
    } else if (std::ranges::count(model::kExactNumberOptions, name,
                                  &model::ExactNumberOption::name) > 0 &&
               option.substr(name.size()) != "=false") {
      violations->Add(field, "is \"{}\", but {} is always false: with it, numbers are not exact",
                      shown, name);
    }
  }
}

}  // namespace troupe
