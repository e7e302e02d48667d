#include "tests/layouts/xla_programs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/testing/recording_client.h"

namespace troupe {

using kernels::xla::Client;
using kernels::xla::ProgramCache;
using kernels::xla::RecordingClient;

namespace {

constexpr int64_t kManyMaps = 20'000;

int64_t MemoryMaps() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

StatusOr<Client*> TheClient() {
  using Made = StatusOr<std::unique_ptr<Client>>;
  static const Made& client = *new Made([]() -> Made {
    TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
    return Client::Make(path, 1);
  }());
  TROUPE_RETURN_IF_ERROR(client.status());
  static RecordingClient& recording = *new RecordingClient(**client, kernels::xla::RecordInFolder);
  return &recording;
}

std::unique_ptr<ProgramCache> MakePrograms(Client& client) {
  return std::make_unique<ProgramCache>(
      client, kernels::xla::Options{{"xla_backend_optimization_level", int64_t{0}},
                                    {"xla_cpu_use_fusion_emitters", false}});
}

std::unique_ptr<ProgramCache>& ThePrograms(Client& client) {
  static auto& programs = *new std::unique_ptr<ProgramCache>(MakePrograms(client));
  return programs;
}

}  // namespace

StatusOr<ProgramCache*> XlaPrograms() {
  TROUPE_ASSIGN_OR_RETURN(Client* const client, TheClient());
  return ThePrograms(*client).get();
}

void FreeManyXlaPrograms() {
  const StatusOr<Client*> client = TheClient();
  if (client.ok() && MemoryMaps() > kManyMaps) ThePrograms(**client) = MakePrograms(**client);
}

}  // namespace troupe
