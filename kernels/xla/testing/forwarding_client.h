// A client that passes every call on to another one: for decorators, which override some calls.
#ifndef TROUPE_KERNELS_XLA_TESTING_FORWARDING_CLIENT_H_
#define TROUPE_KERNELS_XLA_TESTING_FORWARDING_CLIENT_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

class ForwardingClient : public Client {
 public:
  // `to` must outlive this object.
  explicit ForwardingClient(Client& to) : to_(to) {}

  const PluginFacts& plugin() const override { return to_.plugin(); }
  const std::vector<DeviceFacts>& devices() const override { return to_.devices(); }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             std::span<const int> devices) override {
    return to_.Compile(text, options, devices);
  }
  std::string OptionBytes(const Options& options, std::span<const int> devices) const override {
    return to_.OptionBytes(options, devices);
  }
  StatusOr<std::unique_ptr<Program>> Load(std::string_view bytes,
                                          std::span<const int> devices) override {
    return to_.Load(bytes, devices);
  }
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType dtype, std::span<const int64_t> dims,
                                           std::span<const std::byte> bytes, int device) override {
    return to_.Upload(dtype, dims, bytes, device);
  }

 private:
  Client& to_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_TESTING_FORWARDING_CLIENT_H_
