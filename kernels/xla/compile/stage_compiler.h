// Compiles the programs of a stage for TPUs, on any machine that has libtpu, to learn the memory
// that they need.
#ifndef TROUPE_KERNELS_XLA_COMPILE_STAGE_COMPILER_H_
#define TROUPE_KERNELS_XLA_COMPILE_STAGE_COMPILER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/topology.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// The memory of one device of a stage, in bytes.
struct CompiledStage {
  int programs = 0;        // distinct ones
  int64_t code_bytes = 0;  // code of all programs, which stay loaded
  // Values between programs: parameters, states, saved values of all microbatches alive.
  int64_t values_bytes = 0;
  // The fullest program: what it and its piece need in addition.
  std::string fullest;
  int64_t piece_bytes = 0;    // temporary values of the piece
  int64_t padding_bytes = 0;  // by which its arguments and results exceed their elements
  int64_t temporary_bytes = 0;
  // In the programs that a step of one microbatch runs, by kind.
  std::map<std::string, int> collectives;
  int64_t total_bytes() const {
    return code_bytes + values_bytes + piece_bytes + padding_bytes + temporary_bytes;
  }
};

// Not thread-safe.
class StageCompiler {
 public:
  // Finds libtpu (FindLibtpu) and describes the devices `topology` ("v6e:2x4"). `options` are those
  // of the compiler, NAME=VALUE, as a plan states them. Errors: NOT_FOUND, with the way to get it,
  // if there is no libtpu; those of Topology::Make; FAILED_PRECONDITION if the devices are of
  // another kind than `device_model` ("TPU v6 lite").
  static StatusOr<StageCompiler> Make(const std::string& topology, const std::string& device_model,
                                      std::span<const std::string> options);

  // Compiles the programs of a slice: `of_ranks` are its ranks' programs, `devices` their devices,
  // as indices of devices(); each text once for the same devices. `plan` is that of the first rank;
  // `use`: how the ranks use their programs. `begin_program` is called with the name of each
  // program that is compiled, before. Errors: those of StagePrograms::Make; UNIMPLEMENTED, which
  // names an operation that is not lowered; those of the compiler, with the name of the program;
  // they are RESOURCE_EXHAUSTED if a program needs more memory than a device has. REQUIRES: there
  // are as many devices as ranks.
  StatusOr<CompiledStage> Compile(std::vector<const model::Program*> of_ranks,
                                  std::span<const int> devices, const model::MemoryPlan& plan,
                                  const StepUse& use,
                                  const std::function<void(const std::string&)>& begin_program);

  const PluginFacts& plugin() const { return topology_->plugin(); }
  const std::vector<DeviceFacts>& devices() const { return topology_->devices(); }

 private:
  StageCompiler(std::unique_ptr<Topology> topology, Options options)
      : topology_(std::move(topology)), options_(std::move(options)) {}

  std::unique_ptr<Topology> topology_;
  Options options_;
  // By devices and text.
  std::map<std::pair<std::vector<int>, std::string>, CompiledProgram> compiled_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_COMPILE_STAGE_COMPILER_H_
