#include "worker/executor/host_values.h"

#include <algorithm>

namespace troupe {

StatusOr<HostView> HostView::Of(const model::Program& program, kernels::Executable& executable,
                                model::ValueId value, int buffer) {
  HostView view;
  const auto bytes = static_cast<size_t>(program.value(value).bytes());
  if (executable.is_host_memory()) {
    view.bytes_ = {static_cast<const std::byte*>(executable.Address(value, buffer)), bytes};
    return view;
  }
  view.copy_.resize(bytes);
  TROUPE_RETURN_IF_ERROR(executable.Read(value, buffer, view.copy_));
  view.bytes_ = view.copy_;  // moving a vector keeps its elements in place
  return view;
}

HostFill::HostFill(const model::Program& program, kernels::Executable& executable,
                   model::ValueId value)
    : executable_(&executable), value_(value) {
  const auto bytes = static_cast<size_t>(program.value(value).bytes());
  if (executable.is_host_memory()) {
    bytes_ = {static_cast<std::byte*>(executable.Address(value, 0)), bytes};
    std::ranges::fill(bytes_, std::byte{0});
  } else {
    copy_.resize(bytes);
    bytes_ = copy_;
  }
}

Status HostFill::Store() {
  return copy_.empty() ? OkStatus() : executable_->Write(value_, 0, copy_);
}

}  // namespace troupe
