#include "worker/executor/host_values.h"

#include <algorithm>

namespace troupe {

StatusOr<HostView> HostView::Of(const model::Program& program, kernels::ValueMemory& values,
                                model::ValueId value, int buffer) {
  HostView view;
  const auto bytes = static_cast<size_t>(program.value(value).bytes());
  if (values.is_host_memory()) {
    view.bytes_ = {static_cast<const std::byte*>(values.Address(value, buffer)), bytes};
    return view;
  }
  view.copy_.resize(bytes);
  TROUPE_RETURN_IF_ERROR(values.Read(value, buffer, view.copy_));
  view.bytes_ = view.copy_;  // moving a vector keeps its elements in place
  return view;
}

HostFill::HostFill(const model::Program& program, kernels::ValueMemory& values,
                   model::ValueId value)
    : values_(&values), value_(value) {
  const auto bytes = static_cast<size_t>(program.value(value).bytes());
  if (values.is_host_memory()) {
    bytes_ = {static_cast<std::byte*>(values.Address(value, 0)), bytes};
    std::ranges::fill(bytes_, std::byte{0});
  } else {
    copy_.resize(bytes);
    bytes_ = copy_;
  }
}

Status HostFill::Store() { return copy_.empty() ? OkStatus() : values_->Write(value_, 0, copy_); }

}  // namespace troupe
