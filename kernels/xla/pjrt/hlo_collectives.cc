#include "kernels/xla/pjrt/hlo_collectives.h"

#include <utility>

namespace troupe::kernels::xla {
namespace {

constexpr std::string_view kCollectives[] = {"all-reduce",        "all-gather",
                                             "reduce-scatter",    "all-to-all",
                                             "ragged-all-to-all", "collective-permute"};

template <typename Message>
bool Parse(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void CountInstruction(std::string_view opcode, std::map<std::string, int>* counts) {
  constexpr std::string_view kStart = "-start";
  if (opcode.ends_with(kStart)) opcode.remove_suffix(kStart.size());
  for (const std::string_view collective : kCollectives) {
    if (opcode == collective) ++(*counts)[std::string(collective)];
  }
}

}  // namespace

StatusOr<xla_messages::HloModule> ParseHloModule(std::string_view bytes) {
  xla_messages::HloModule module;
  if (Parse(bytes, &module)) return module;
  return InvalidArgument("{} bytes of an optimized program are no HloModuleProto", bytes.size());
}

StatusOr<xla_messages::HloModule> ParseHloModuleWithConfig(std::string_view bytes) {
  xla_messages::HloModuleWithConfig whole;
  if (Parse(bytes, &whole) && whole.has_hlo_module()) return std::move(*whole.mutable_hlo_module());
  return InvalidArgument("{} bytes of an optimized program are no HloModuleProtoWithConfig",
                         bytes.size());
}

std::map<std::string, int> CountCollectives(const xla_messages::HloModule& module) {
  std::map<std::string, int> counts;
  for (const xla_messages::HloComputation& computation : module.computations()) {
    for (const xla_messages::HloInstruction& instruction : computation.instructions())
      CountInstruction(instruction.opcode(), &counts);
  }
  return counts;
}

}  // namespace troupe::kernels::xla
