#include "kernels/cuda/runtime/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/runtime/architecture.h"
#include "kernels/cuda/runtime/cuda_error.h"
#include "kernels/cuda/runtime/outside_of_capture.h"

namespace troupe::kernels::cuda {
namespace {

// A wait first polls without pause for kAsking, because most waits are short; then it sleeps
// between polls.
constexpr auto kAsking = std::chrono::microseconds(500);
constexpr auto kPause = std::chrono::microseconds(20);

}  // namespace

std::string CudaVersion(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string UuidText(const std::array<unsigned char, 16>& bytes) {
  std::string text = "GPU";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Make(int ordinal, CudaDeviceOptions options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(ordinal, std::move(options)));
  TROUPE_RETURN_IF_ERROR(device->Open());
  return device;
}

StatusOr<CudaDeviceFacts> CudaDevice::FactsOf(int ordinal) {
  CudaDeviceFacts facts;
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaRuntimeGetVersion(&facts.runtime_version), "CUDA runtime"));
  // The version is 0 if there is no driver.
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaDriverGetVersion(&facts.driver_version), "CUDA driver"));
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    const std::string driver = facts.driver_version == 0 ? "there is no NVIDIA driver"
                                                         : "the driver's CUDA version is " +
                                                               CudaVersion(facts.driver_version);
    return CheckCuda(error, fmt::format("no GPU can be used ({}, this build's CUDA is {})", driver,
                                        CudaVersion(facts.runtime_version)));
  }
  if (ordinal < 0 || ordinal >= count) {
    return InvalidArgument("GPU {} of {}", ordinal, count);
  }
  cudaDeviceProp properties;
  TROUPE_RETURN_IF_ERROR(
      CheckCuda(cudaGetDeviceProperties(&properties, ordinal), "properties of the GPU"));
  facts.name = properties.name;
  std::array<unsigned char, 16> uuid;
  std::copy_n(properties.uuid.bytes, uuid.size(), uuid.begin());
  facts.uuid = UuidText(uuid);
  char bus_id[32] = "";
  TROUPE_RETURN_IF_ERROR(
      CheckCuda(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal), "PCI address of the GPU"));
  facts.pci_bus_id = bus_id;
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.capability_major = properties.major;
  facts.capability_minor = properties.minor;
  if (!Runs(TROUPE_CUDA_ARCHITECTURE, properties.major, properties.minor)) {
    return FailedPrecondition(
        "{} has compute capability {}.{}, which sm_{} of this build does not support", facts.name,
        properties.major, properties.minor, TROUPE_CUDA_ARCHITECTURE);
  }
  return facts;
}

Status CudaDevice::Open() {
  TROUPE_ASSIGN_OR_RETURN(facts_, FactsOf(ordinal_));
  TROUPE_RETURN_IF_ERROR(Enter());
  for (const Stream stream : {Stream::kCompute, Stream::kCommunication, Stream::kCopy}) {
    TROUPE_RETURN_IF_ERROR(AddStream(stream == Stream::kCommunication, Name(stream)));
  }
  return OkStatus();
}

Status CudaDevice::AddStream(bool first, std::string_view name) {
  int lowest = 0, highest = 0;  // the highest priority is the smallest number
  TROUPE_RETURN_IF_ERROR(
      Check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities of streams"));
  CUstream_st* stream = nullptr;
  TROUPE_RETURN_IF_ERROR(
      Check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, first ? highest : lowest),
            name));
  streams_.push_back(stream);
  return OkStatus();
}

StatusOr<Stream> CudaDevice::MakeStream() {
  constexpr size_t kStreamsMax = 256;
  if (streams_.size() == kStreamsMax) return ResourceExhausted("{} streams are made", kStreamsMax);
  TROUPE_RETURN_IF_ERROR(Enter());
  const auto made = static_cast<Stream>(streams_.size());
  TROUPE_RETURN_IF_ERROR(AddStream(/*first=*/true, Name(made)));
  return made;
}

CudaDevice::~CudaDevice() {
  if (gone_ || !Enter().ok()) return;
  for (CUgraphExec_st* const graph : graphs_) {
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  }
  for (CUevent_st* const event : events_) cudaEventDestroy(event);
  for (CUstream_st* const stream : streams_) cudaStreamDestroy(stream);
}

Status CudaDevice::Enter() const {
  return CheckCuda(cudaSetDevice(ordinal_), fmt::format("GPU {}", ordinal_));
}

Status CudaDevice::Check(int error, std::string_view what) {
  const auto cuda_error = static_cast<cudaError_t>(error);
  if (LosesDevice(cuda_error)) gone_ = true;
  return CheckCuda(cuda_error, what);
}

std::string CudaDevice::description() const {
  return fmt::format("{}, driver for CUDA {}, runtime {}", facts_.name,
                     CudaVersion(facts_.driver_version), CudaVersion(facts_.runtime_version));
}

StatusOr<DeviceMemory> CudaDevice::Allocate(int64_t bytes) {
  TROUPE_RETURN_IF_ERROR(Enter());
  const OutsideOfCapture outside;
  void* memory = nullptr;
  // For 0 bytes the runtime returns null, but callers need a distinct address.
  TROUPE_RETURN_IF_ERROR(
      Check(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1))),
            fmt::format("{} bytes of {}", bytes, facts_.name)));
  return DeviceMemory(static_cast<char*>(memory), [this](char* address) {
    if (CanFree()) cudaFree(address);
  });
}

StatusOr<DeviceMemory> CudaDevice::AllocatePinned(int64_t bytes) {
  TROUPE_RETURN_IF_ERROR(Enter());
  const OutsideOfCapture outside;  // a collective's mark is allocated when it is first enqueued
  void* memory = nullptr;
  TROUPE_RETURN_IF_ERROR(
      Check(cudaMallocHost(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1))),
            fmt::format("{} bytes of pinned memory", bytes)));
  return DeviceMemory(static_cast<char*>(memory), [this](char* address) {
    if (CanFree()) cudaFreeHost(address);
  });
}

StatusOr<std::shared_ptr<void>> CudaDevice::Pin(void* memory, int64_t bytes) {
  TROUPE_RETURN_IF_ERROR(Enter());
  TROUPE_RETURN_IF_ERROR(
      Check(cudaHostRegister(memory, static_cast<size_t>(bytes), cudaHostRegisterDefault),
            fmt::format("{} bytes of host memory to be pinned", bytes)));
  return std::shared_ptr<void>(memory, [this](void* address) {
    if (CanFree()) cudaHostUnregister(address);
  });
}

Status CudaDevice::Load(const KernelLaunch& launch) {
  const auto found = loaded_.find(launch.kernel);
  if (found != loaded_.end() && launch.shape.shared_bytes <= found->second) return OkStatus();
  TROUPE_RETURN_IF_ERROR(Enter());
  const OutsideOfCapture outside;
  cudaFuncAttributes attributes;
  TROUPE_RETURN_IF_ERROR(Check(cudaFuncGetAttributes(&attributes, launch.kernel), launch.name));
  auto allowed = static_cast<size_t>(std::max(attributes.maxDynamicSharedSizeBytes, 0));
  if (launch.shape.shared_bytes > allowed) {
    TROUPE_RETURN_IF_ERROR(Check(
        cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shape.shared_bytes)),
        fmt::format("{} bytes of shared memory for {}", launch.shape.shared_bytes, launch.name)));
    allowed = launch.shape.shared_bytes;
  }
  loaded_[launch.kernel] = allowed;
  return OkStatus();
}

Status CudaDevice::Launch(const KernelLaunch& launch, Stream stream) {
  TROUPE_RETURN_IF_ERROR(Load(launch));
  TROUPE_RETURN_IF_ERROR(Enter());
  void* arguments[] = {const_cast<std::byte*>(launch.arguments.data())};
  return Check(
      cudaLaunchKernel(launch.kernel, dim3{launch.shape.blocks_x, launch.shape.blocks_y, 1},
                       dim3{launch.shape.threads, 1, 1}, arguments, launch.shape.shared_bytes,
                       native_stream(stream)),
      launch.name);
}

Status CudaDevice::Copy(void* to, const void* from, int64_t bytes, Stream stream) {
  if (bytes == 0) return OkStatus();
  TROUPE_RETURN_IF_ERROR(Enter());
  return Check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault,
                               native_stream(stream)),
               "copy");
}

Status CudaDevice::CopyNow(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  TROUPE_RETURN_IF_ERROR(Enter());
  TROUPE_RETURN_IF_ERROR(Copy(to, from, bytes, Stream::kCopy));
  return Await([this] { return cudaStreamQuery(native_stream(Stream::kCopy)); },
               options_.interruption);
}

Status CudaDevice::Clear(void* to, int64_t bytes, Stream stream) {
  if (bytes == 0) return OkStatus();
  TROUPE_RETURN_IF_ERROR(Enter());
  return Check(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), native_stream(stream)), "clear");
}

StatusOr<Event> CudaDevice::MakeEvent() {
  TROUPE_RETURN_IF_ERROR(Enter());
  CUevent_st* event = nullptr;
  TROUPE_RETURN_IF_ERROR(Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event"));
  events_.push_back(event);
  return static_cast<Event>(events_.size() - 1);
}

Status CudaDevice::Record(Event event, Stream stream) {
  TROUPE_RETURN_IF_ERROR(Enter());
  return Check(cudaEventRecord(events_[static_cast<size_t>(event)], native_stream(stream)),
               "record of an event");
}

Status CudaDevice::WaitFor(Event event, Stream stream) {
  TROUPE_RETURN_IF_ERROR(Enter());
  return Check(cudaStreamWaitEvent(native_stream(stream), events_[static_cast<size_t>(event)], 0),
               "wait for an event");
}

Status CudaDevice::BeginCapture() {
  TROUPE_CHECK(!capturing_, "a capture begins during another one");
  TROUPE_RETURN_IF_ERROR(Enter());
  TROUPE_RETURN_IF_ERROR(Check(
      cudaStreamBeginCapture(native_stream(Stream::kCompute), cudaStreamCaptureModeThreadLocal),
      "begin of a capture"));
  capturing_ = true;
  return OkStatus();
}

StatusOr<Graph> CudaDevice::EndCapture() {
  TROUPE_CHECK(capturing_, "no capture is in progress");
  capturing_ = false;
  TROUPE_RETURN_IF_ERROR(Enter());
  cudaGraph_t captured = nullptr;
  TROUPE_RETURN_IF_ERROR(
      Check(cudaStreamEndCapture(native_stream(Stream::kCompute), &captured), "capture"));
  CUgraphExec_st* graph = nullptr;
  const Status made = Check(cudaGraphInstantiate(&graph, captured, 0), "graph");
  cudaGraphDestroy(captured);
  TROUPE_RETURN_IF_ERROR(made);
  // Otherwise the first launch would upload it.
  if (Status uploaded = Check(cudaGraphUpload(graph, native_stream(Stream::kCompute)), "graph");
      !uploaded.ok()) {
    if (!gone_) cudaGraphExecDestroy(graph);
    return uploaded;
  }
  graphs_.push_back(graph);
  return static_cast<Graph>(graphs_.size() - 1);
}

Status CudaDevice::LaunchGraph(Graph graph) {
  TROUPE_RETURN_IF_ERROR(Enter());
  return Check(
      cudaGraphLaunch(graphs_[static_cast<size_t>(graph)], native_stream(Stream::kCompute)),
      "graph");
}

void CudaDevice::Release(Graph graph) {
  CUgraphExec_st* const released = std::exchange(graphs_[static_cast<size_t>(graph)], nullptr);
  // The runtime does not wait for a launch in flight.
  if (!gone_ && Enter().ok()) cudaGraphExecDestroy(released);
}

Status CudaDevice::Await(const std::function<int()>& ask,
                         const std::function<Status()>& interruption) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const int state = ask();
    if (state != cudaErrorNotReady) {
      TROUPE_RETURN_IF_ERROR(Check(state, "work of the device"));
      // Aborted collectives also count as over.
      return interruption ? interruption() : OkStatus();
    }
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited < kAsking) continue;
    if (waited >= options_.wait_limit) {
      gone_ = true;
      return DeadlineExceeded("{} did not complete within {:.1f} s", facts_.name,
                              ToSeconds(options_.wait_limit));
    }
    if (interruption) TROUPE_RETURN_IF_ERROR(interruption());
    std::this_thread::sleep_for(kPause);
  }
}

Status CudaDevice::Finish(Event event) {
  TROUPE_RETURN_IF_ERROR(Enter());
  CUevent_st* const waited_for = events_[static_cast<size_t>(event)];
  return Await([=] { return cudaEventQuery(waited_for); }, options_.interruption);
}

bool CudaDevice::CanFree() {
  if (gone_ || !Enter().ok()) return false;
  for (CUstream_st* const stream : streams_) {
    if (!Await([=] { return cudaStreamQuery(stream); }, nullptr).ok()) return false;
  }
  return true;
}

}  // namespace troupe::kernels::cuda
