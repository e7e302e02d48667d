#include "kernels/cuda/runtime/device_loss.h"

#include "absl/strings/cord.h"

namespace troupe::kernels::cuda {
namespace {

constexpr char kUrl[] = "troupe/device-loss";

}  // namespace

Status WithDeviceLoss(Status status, std::string_view error) {
  if (!status.ok()) status.SetPayload(kUrl, absl::Cord({error.data(), error.size()}));
  return status;
}

std::string DeviceLossOf(const Status& status) {
  const auto error = status.GetPayload(kUrl);
  return error ? std::string(*error) : "";
}

}  // namespace troupe::kernels::cuda
