// A client that reports the text of every program that it compiles.
#ifndef TROUPE_KERNELS_XLA_TESTING_RECORDING_CLIENT_H_
#define TROUPE_KERNELS_XLA_TESTING_RECORDING_CLIENT_H_

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "kernels/xla/testing/forwarding_client.h"

namespace troupe::kernels::xla {

class RecordingClient final : public ForwardingClient {
 public:
  using Record = std::function<void(std::string_view text)>;
  // `to` must outlive this object. `record` is called by the thread that compiles.
  RecordingClient(Client& to, Record record) : ForwardingClient(to), record_(std::move(record)) {}

  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             std::span<const int> devices) override {
    record_(text);
    return ForwardingClient::Compile(text, options, devices);
  }

 private:
  const Record record_;
};

// Writes a program's text to a file of the folder that the variable TROUPE_XLA_TEXTS of the
// environment names (tests/interop/stablehlo_test.py); nothing if it is not set.
inline void RecordInFolder(std::string_view text) {
  const char* const folder = std::getenv("TROUPE_XLA_TEXTS");
  if (folder == nullptr) return;
  const std::string path =
      fmt::format("{}/{:016x}.mlir", folder, std::hash<std::string_view>()(text));
  std::ofstream file(path);
  file << text;
  file.close();
  TROUPE_CHECK(file.good(), "{} was not written", path);
}

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_TESTING_RECORDING_CLIENT_H_
