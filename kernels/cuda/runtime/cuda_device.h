// A GPU, by the CUDA runtime. Its compute and copy streams have the lowest priority and the
// communication stream the highest, so that a ready collective runs before thread blocks that have
// not started.
//
// Thread-safety: one thread at a time, any thread; CopyNow may run concurrently. If the device is
// lost (device_loss.h) or its work never ends, its memory is not freed, because freeing would block
// forever; the process must be replaced.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DEVICE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DEVICE_H_

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
#include "kernels/cuda/runtime/device.h"

// The CUDA runtime's cudaStream_t and so on, for files that do not include its headers.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace troupe::kernels::cuda {

struct CudaDeviceOptions {
  Duration wait_limit = std::chrono::minutes(1);  // limit of one Finish
  // Called periodically while the host waits, and when the wait is over; a status other than OK
  // becomes the result of the wait. An abort of collectives must be reported here before the
  // collectives end because of it. Null: no interruption.
  std::function<Status()> interruption;
};

struct CudaDeviceFacts {
  std::string name;        // "NVIDIA H200"
  std::string uuid;        // "GPU-8f6e…", as reported by NVML
  std::string pci_bus_id;  // "0000:1B:00.0"
  int64_t memory_bytes = 0;
  int multiprocessors = 0;
  int capability_major = 0, capability_minor = 0;
  int driver_version = 0;  // highest CUDA version that the driver supports: 13000 is 13.0
  int runtime_version = 0;
};

// "13.0" for 13000.
std::string CudaVersion(int version);
// "GPU-00112233-4455-6677-8899-aabbccddeeff".
std::string UuidText(const std::array<unsigned char, 16>& bytes);

class CudaDevice : public Device {
 public:
  // Opens GPU `ordinal` among those in CUDA_VISIBLE_DEVICES. Errors: UNAVAILABLE with the driver's
  // reason if no GPU can be used, INVALID_ARGUMENT if there are fewer GPUs, FAILED_PRECONDITION if
  // this build's kernels do not run on it.
  static StatusOr<std::unique_ptr<CudaDevice>> Make(int ordinal, CudaDeviceOptions options);
  // The facts of GPU `ordinal`; allocates none of its memory. Errors: as for Make.
  static StatusOr<CudaDeviceFacts> FactsOf(int ordinal);
  // Does not wait for work in flight.
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
  // Whether memory and the device resources of libraries can be freed; the runtime would wait for
  // all work in flight. Itself waits for that work, up to the limit of one wait.
  bool CanFree();
  // Whether something was not or will not be freed, so that the process must be replaced.
  bool is_gone() const { return gone_.load(); }

 private:
  CudaDevice(int ordinal, CudaDeviceOptions options)
      : options_(std::move(options)), ordinal_(ordinal) {}
  Status Open();
  // `first`: the stream has priority over the compute stream.
  Status AddStream(bool first, std::string_view name);
  // Converts the result of a runtime call, and records a loss of the device. `error` is a
  // cudaError_t.
  Status Check(int error, std::string_view what);
  // Polls until the answer, a cudaError_t, is other than "not ready"; `interruption` may end the
  // wait.
  Status Await(const std::function<int()>& ask, const std::function<Status()>& interruption);
  const CudaDeviceOptions options_;
  const int ordinal_;
  CudaDeviceFacts facts_;
  std::vector<CUstream_st*> streams_;  // named streams first
  std::vector<CUevent_st*> events_;
  std::vector<CUgraphExec_st*> graphs_;  // null: released
  // For each kernel: the bytes of dynamic shared memory that it may be launched with.
  std::unordered_map<const void*, size_t> loaded_;
  bool capturing_ = false;
  std::atomic<bool> gone_ = false;  // lost, or it did not finish in time
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DEVICE_H_
