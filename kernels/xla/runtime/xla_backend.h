// Runs stage programs on a device of XLA through a plugin (kernels/xla/pjrt/client.h). Collectives
// between the ranks of a slice are part of the compiled programs; others run in host memory.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_XLA_BACKEND_H_
#define TROUPE_KERNELS_XLA_RUNTIME_XLA_BACKEND_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "kernels/xla/runtime/program_cache.h"

namespace troupe::kernels::xla {

// The ranks of one pipeline stage as the partitions of one program; or one rank alone.
struct Slice {
  int partition = 0;               // this rank's
  std::vector<int> devices = {0};  // by partition: indices of the client's devices, each once
  // The programs of all ranks, by partition; the one of this rank equals the one that is prepared.
  // Null for one rank alone.
  std::shared_ptr<const std::vector<model::Program>> programs;
};

struct XlaOptions {
  Slice slice;
  StepUse use;
  int threads = 1;  // run collectives in host memory, and compile programs at once
  // Returned by Backend::fallbacks: where the slice is not the planned one.
  std::vector<std::string> fallbacks;
};

// One thread at a time may use it, but any thread may call compilation(). Several backends, each
// with a thread of its own, may have the same programs.
class XlaBackend : public Backend {
 public:
  // `programs` must outlive this object and its executables. Errors: INVALID_ARGUMENT if its client
  // has no such device, the device of this rank is another process's, or the slice has a device
  // twice, other numbers of devices and programs, or no such partition.
  static StatusOr<std::unique_ptr<XlaBackend>> Make(ProgramCache& programs,
                                                    const XlaOptions& options);
  // Likewise; the backend owns both. `client` is that of `programs`.
  static StatusOr<std::unique_ptr<XlaBackend>> Make(std::unique_ptr<Client> client,
                                                    std::unique_ptr<ProgramCache> programs,
                                                    const XlaOptions& options);

  std::string kernel_level() const override;
  // Compiles the program: all that a rank runs, evaluations included. All ranks of a slice prepare
  // theirs. Also UNIMPLEMENTED, which names an operation that is not lowered, or in which the ranks
  // of the slice differ.
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator& find_communicator) override;
  // Operations have no fall-backs: what is not lowered is refused.
  const std::vector<std::string>& fallbacks() const override { return options_.fallbacks; }
  const std::vector<std::string>& implementations() const override { return none_; }
  std::vector<ExecutedMatmul> executed_matmuls() const override { return executed_matmuls_; }
  PreparationCounts preparation_counts() const override { return {}; }
  std::optional<Compilation> compilation() const override { return programs_.compilation(); }
  // A plugin for processors can make another client, which is to be of the plugin's present file;
  // libtpu keeps the chip of its process.
  bool releases_device() const override;

 private:
  XlaBackend(ProgramCache& programs, XlaOptions options, std::unique_ptr<CpuBackend> host)
      : programs_(programs), options_(std::move(options)), host_(std::move(host)) {}

  std::unique_ptr<Client> owned_client_;          // null: another object's
  std::unique_ptr<ProgramCache> owned_programs_;  // likewise
  ProgramCache& programs_;
  const XlaOptions options_;
  const std::unique_ptr<CpuBackend> host_;
  std::vector<ExecutedMatmul> executed_matmuls_;
  const std::vector<std::string> none_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_XLA_BACKEND_H_
