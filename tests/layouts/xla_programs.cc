#include "tests/layouts/xla_programs.h"

#include <memory>
#include <string>

#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/testing/recording_client.h"

namespace troupe {

using kernels::xla::Client;
using kernels::xla::ProgramCache;
using kernels::xla::RecordingClient;

StatusOr<ProgramCache*> XlaPrograms() {
  using Made = StatusOr<std::unique_ptr<Client>>;
  static const Made& client = *new Made([]() -> Made {
    TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
    return Client::Make(path, 1);
  }());
  TROUPE_RETURN_IF_ERROR(client.status());
  static RecordingClient& recording = *new RecordingClient(**client, kernels::xla::RecordInFolder);
  static ProgramCache& programs = *new ProgramCache(
      recording,
      {{"xla_backend_optimization_level", int64_t{0}}, {"xla_cpu_use_fusion_emitters", false}});
  return &programs;
}

}  // namespace troupe
