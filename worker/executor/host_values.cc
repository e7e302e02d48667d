#include "worker/executor/host_values.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/numerics/bfloat16.h"

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
    : values_(&values),
      value_(value),
      rounds_(program.value(value).dtype == model::DType::kBFloat16) {
  TROUPE_CHECK(rounds_ || program.value(value).dtype == model::DType::kFloat32, "{} is {}",
               program.value(value).name, model::Name(program.value(value).dtype));
  const auto elements = static_cast<size_t>(program.value(value).elements());
  if (values.is_host_memory() && !rounds_) {
    numbers_ = {static_cast<float*>(values.Address(value, 0)), elements};
    std::ranges::fill(numbers_, 0.0f);
  } else {
    copy_.resize(elements);
    numbers_ = copy_;
  }
}

Status HostFill::Store() {
  if (copy_.empty()) return OkStatus();
  if (!rounds_) return values_->Write(value_, 0, std::as_bytes(std::span(copy_)));
  std::vector<kernels::BFloat16> rounded(copy_.size());
  std::ranges::transform(copy_, rounded.begin(), kernels::ToBFloat16);
  return values_->Write(value_, 0, std::as_bytes(std::span(rounded)));
}

}  // namespace troupe
