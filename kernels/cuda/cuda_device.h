// A GPU by the CUDA runtime. Its compute and copy streams have the lowest priority, the communication stream the highest:
// a collective that is ready goes ahead of the blocks of kernels that have not begun.
//
// Thread-safety: one thread at a time, any thread; CopyNow beside it. Where the device is lost (device_loss.h), or what it does never ends, its
// memory is not given back, for that would wait for ever: the process is to be replaced.
#ifndef TROUPE_KERNELS_CUDA_CUDA_DEVICE_H_
#define TROUPE_KERNELS_CUDA_CUDA_DEVICE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/cuda/device.h"

// What the CUDA runtime calls cudaStream_t and so on, for files that do not read its headers.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace troupe::kernels::cuda {

struct CudaDeviceOptions {
  Duration wait_limit = std::chrono::minutes(1);  // of one Finish
  // Asked now and then while the host waits, and when the wait is over: what it returns other than OK is what became of
  // it. An abort of collectives must be told before they end of it. Null: nothing is.
  std::function<Status()> interruption;
};

struct CudaDeviceFacts {
  std::string name;        // "NVIDIA H200"
  std::string uuid;        // "GPU-8f6e…", as NVML has it
  std::string pci_bus_id;  // "0000:1B:00.0"
  int64_t memory_bytes = 0;
  int multiprocessors = 0;
  int capability_major = 0, capability_minor = 0;
  int driver_version = 0;   // of CUDA, that the driver supports: 13000 is 13.0
  int runtime_version = 0;
};

// "13.0" of 13000.
std::string CudaVersion(int version);
// "GPU-00112233-4455-6677-8899-aabbccddeeff".
std::string UuidText(const std::array<unsigned char, 16>& bytes);

class CudaDevice : public Device {
 public:
  // GPU `ordinal` of those that CUDA_VISIBLE_DEVICES leaves. UNAVAILABLE with the driver's reason where no GPU can be
  // used, INVALID_ARGUMENT where there are fewer, FAILED_PRECONDITION where this build's kernels do not run on it.
  static StatusOr<std::unique_ptr<CudaDevice>> Make(int ordinal, CudaDeviceOptions options);
  // What GPU `ordinal` is; takes no memory of it. Errors of Make.
  static StatusOr<CudaDeviceFacts> FactsOf(int ordinal);
  // Waits for nothing.
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string description() const override;
  StatusOr<DeviceMemory> Allocate(int64_t bytes) override;
  StatusOr<DeviceMemory> AllocatePinned(int64_t bytes) override;
  StatusOr<std::shared_ptr<void>> Pin(void* memory, int64_t bytes) override;
  Status Load(const KernelLaunch& launch) override;
  Status Launch(const KernelLaunch& launch, Stream stream) override;
  Status Copy(void* to, const void* from, int64_t bytes, Stream stream) override;
  Status CopyNow(void* to, const void* from, int64_t bytes) override;
  Status Clear(void* to, int64_t bytes, Stream stream) override;
  StatusOr<Event> MakeEvent() override;
  Status Record(Event event, Stream stream) override;
  Status WaitFor(Event event, Stream stream) override;
  Status BeginCapture() override;
  StatusOr<Graph> EndCapture() override;
  Status LaunchGraph(Graph graph) override;
  void Release(Graph graph) override;
  Status Finish(Event event) override;
  StatusOr<Stream> MakeStream() override;

  const CudaDeviceFacts& facts() const { return facts_; }
  // For libraries. Valid as long as the device.
  CUstream_st* native_stream(Stream stream) const { return streams_[static_cast<size_t>(stream)]; }
  // Makes this the device of the calling thread, for libraries that ask the runtime for it.
  Status Enter() const;
  // Whether memory, and what libraries hold of the device, can be given back: the runtime would wait for all that is under
  // way. Waits for it itself, up to the limit of one wait.
  bool CanFree();
  // Whether something could not be given back, or will not be: the process is to be replaced.
  bool is_gone() const { return gone_.load(); }

 private:
  CudaDevice(int ordinal, CudaDeviceOptions options)
      : options_(std::move(options)), ordinal_(ordinal) {}
  Status Open();
  // `first`: its work goes ahead of the compute stream's.
  Status AddStream(bool first, std::string_view name);
  // Of a call of the runtime: remembers that the device is lost. `error`: a cudaError_t.
  Status Check(int error, std::string_view what);
  // Asks until the answer, a cudaError_t, is other than "not ready"; `interruption` may end it.
  Status Await(const std::function<int()>& ask, const std::function<Status()>& interruption);
  const CudaDeviceOptions options_;
  const int ordinal_;
  CudaDeviceFacts facts_;
  std::vector<CUstream_st*> streams_;  // those with a name first
  std::vector<CUevent_st*> events_;
  std::vector<CUgraphExec_st*> graphs_;  // null: released
  // By kernel: the bytes of dynamic shared memory that it may be launched with.
  std::unordered_map<const void*, size_t> loaded_;
  bool capturing_ = false;
  std::atomic<bool> gone_ = false;  // lost, or it did not finish in time
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDA_DEVICE_H_
