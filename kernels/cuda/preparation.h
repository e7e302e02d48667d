// From the operations of a program to commands of a device, on one arena: values where the memory plan has them, then
// tables that kernels read, then working memory that operations have one after the other, of each stream that computes.
#ifndef TROUPE_KERNELS_CUDA_PREPARATION_H_
#define TROUPE_KERNELS_CUDA_PREPARATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collective/device_communicator.h"
#include "kernels/arena_layout.h"
#include "kernels/cuda/command.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_libraries.h"
#include "kernels/cuda/stalls.h"
#include "kernels/op_arguments.h"
#include "kernels/rope_tables.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::cuda {

// Null where the group has one rank.
using FindDeviceCommunicator = std::function<DeviceCommunicator*(const model::CollectiveGroup&)>;

// INVALID_ARGUMENT where nothing of the dtype is reduced.
StatusOr<ElementType> ElementTypeOf(model::DType dtype);

// Allocate, then any number of Make, then Finish.
class Preparation {
 public:
  // The references and libraries outlive this.
  Preparation(const model::Program& program, const model::MemoryPlan& plan, Device& device,
              const DeviceLibraries& libraries, const Stalls& stalls,
              FindDeviceCommunicator find_communicator);

  // Measures tables and working memory and allocates the arena. RESOURCE_EXHAUSTED names the bytes that cannot be had,
  // UNIMPLEMENTED an operation that the backend does not have.
  Status Allocate();

  // The commands of `op` on one buffer. `accumulate`: of operations that do, whether onto what is there.
  StatusOr<Commands> Make(const model::Op& op, int buffer, bool accumulate);

  // Brings tables to the device, and returns when they are there.
  Status Finish();

  char* Address(model::ValueId value, int buffer) const {
    return At(layout_.OffsetOf(value, buffer));
  }
  int64_t arena_bytes() const {
    return layout_.bytes() + tables_bytes_ + working_.bytes + of_communication_.bytes;
  }
  // "matmul x.y: own kernel": operations that the library does not make.
  const std::vector<std::string>& fallbacks() const { return fallbacks_; }
  const ExecutedProducts& executed_products() const { return executed_products_; }
  // "attention: own kernels": of operations that a library or our own kernels can make, by what was chosen.
  const std::set<std::string>& implementations() const { return implementations_; }

 private:
  // Working memory of the kernels of one stream.
  struct Working {
    int64_t bytes = 0;  // the most that an operation takes
    int64_t taken = 0;  // by the operation at hand

    int64_t Take(int64_t count);  // returns where it begins
  };

  // Hands out `count` elements of working memory that the operation at hand has to itself on the compute stream.
  template <typename T>
  T* Take(int64_t count) {
    return reinterpret_cast<T*>(TakeBytes(count * static_cast<int64_t>(sizeof(T))));
  }
  char* TakeBytes(int64_t bytes);
  // And on the communication stream.
  template <typename T>
  T* TakeOfCommunication(int64_t count) {
    return reinterpret_cast<T*>(TakeBytesOfCommunication(count * static_cast<int64_t>(sizeof(T))));
  }
  char* TakeBytesOfCommunication(int64_t bytes);
  // The table of the operation at hand with these contents, on the device.
  template <typename T>
  const T* Table(const std::vector<T>& contents) {
    return reinterpret_cast<const T*>(TableBytes(std::as_bytes(std::span(contents))));
  }
  const char* TableBytes(std::span<const std::byte> contents);

  Status MakeInto(Commands* commands, const model::Op& op, int buffer, bool accumulate);
  void AddCopy(Commands* commands, const void* from, void* to, int64_t bytes) const;
  Status AddProduct(Commands* commands, const model::Op& op, const OpArguments& arguments,
                    bool accumulate);
  // Of factors in 8 bits: by the library, or given back as bfloat16 first, which is a fall-back.
  Status AddFloat8Product(Commands* commands, const model::Op& op, const OpArguments& arguments, ProductArgs args,
                          const ProductShape& shape);
  // Of float32 or bfloat16.
  Status AddProductOf(Commands* commands, const model::Op& op, const ProductArgs& args, const ProductShape& shape);
  // Whether its matrices are aligned as a library's must be.
  static bool SuitsLibrary(const ProductArgs& args);
  // Null where our own kernel makes it.
  StatusOr<LibraryProduct*> LibraryProductOf(const ProductShape& shape);
  Status AddAttention(Commands* commands, const AttentionArgs& args, bool bfloat16);
  Status AddAttentionGrad(Commands* commands, const AttentionGradArgs& args, bool bfloat16);
  // Our own kernels make the attention at hand; a fall-back where the library is missing that would.
  void NoteOwnAttention(const AttentionRows& rows, bool bfloat16);
  void AddOwnAttentionGrad(Commands* commands, const AttentionGradArgs& args, bool bfloat16);
  // Once each.
  void NoteFallback(const std::string& text);
  Status AddCollective(Commands* commands, const model::Op& op, int buffer);
  // Sums whose terms travel as bfloat16.
  Status AddPackedSum(Commands* commands, const model::Op& op, int buffer, DeviceCommunicator* group);
  // Packs rows, exchanges them and puts them where they belong.
  Status AddRowExchange(Commands* commands, const model::Op& op, int buffer, DeviceCommunicator* group);
  // Of rows as many as counts say that are known on the device alone: the host waits for them before it can put the
  // exchange onto its stream, in every run.
  Status AddRoutedExchange(Commands* commands, const model::Op& op, int buffer, DeviceCommunicator* group);
  Status AddCollectiveOfOne(Commands* commands, const model::Op& op, int buffer);
  // Makes `communication`, on its stream, follow what is on the compute stream. The compute stream goes on without it
  // where the operation is asynchronous, until its kWait.
  Status AddCommunication(Commands* commands, const model::Op& op, Commands communication);
  // Counts that the host reads, and when they are there.
  struct HostCounts {
    DeviceMemory memory;
    Event there = 0;
  };
  StatusOr<HostCounts*> HostCountsOf(const model::Op& op, int64_t count);
  Status AddControlReduce(Commands* commands, const model::Op& op);
  void AddControlRouted(Commands* commands, const model::Op& op);
  void AddSumOfSquares(Commands* commands, const model::Op& op);
  void AddAdamW(Commands* commands, const model::Op& op);
  int64_t Extent(model::ValueId value, size_t dim) const {
    return program_.value(value).dims[dim].local;
  }

  const model::Program& program_;
  Device& device_;
  const DeviceLibraries libraries_;
  const Stalls& stalls_;
  const FindDeviceCommunicator find_communicator_;
  const ArenaLayout layout_;
  const RopeTables rope_tables_;

  // Of the arena. While it is being measured addresses are no memory's, but aligned and apart as they will be.
  char* At(int64_t offset) const {
    return reinterpret_cast<char*>(base_ + static_cast<uintptr_t>(offset));
  }

  DeviceMemory arena_;  // null while it is being measured
  uintptr_t base_ = uintptr_t{1} << 20;
  std::vector<std::byte> tables_;  // their contents
  int64_t tables_bytes_ = 0;
  Working working_, of_communication_;
  const model::Op* op_ = nullptr;  // at hand
  int tables_of_op_ = 0;
  std::map<std::pair<const model::Op*, int>, int64_t> table_offsets_;
  std::map<ProductShape, std::unique_ptr<LibraryProduct>> library_products_;
  // Null: our own kernels make them.
  std::map<LibraryAttentionShape, std::unique_ptr<LibraryAttention>> library_attention_;
  std::map<LibraryAttentionShape, std::unique_ptr<LibraryAttentionGrad>> library_attention_grad_;
  // By the first output of a collective.
  struct UnderWay {
    Event begun = 0, over = 0;
    Purpose purpose = Purpose::kControl;
  };
  std::map<model::ValueId, UnderWay> under_way_;
  std::map<const model::Op*, HostCounts> host_counts_;
  std::vector<std::string> fallbacks_;
  ExecutedProducts executed_products_;
  std::set<std::string> implementations_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PREPARATION_H_
