#include "kernels/cuda/emulated/emulated_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/emulated/launch.h"

namespace troupe::kernels::cuda::emulator {
namespace {

constexpr size_t kAlignment = 256;
// Duration of a wait for other ranks when there is no other work; short, because it waits for one
// of several operations.
constexpr auto kNap = std::chrono::microseconds(200);

}  // namespace

StatusOr<DeviceMemory> EmulatedDevice::Allocate(int64_t bytes) {
  auto* const memory = static_cast<char*>(
      ::operator new (static_cast<size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow));
  if (memory == nullptr)
    return ResourceExhausted("cannot allocate {} bytes of emulated memory", bytes);
  std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  allocated_bytes_ += bytes;
  return DeviceMemory(memory, [this, bytes](char* address) {
    allocated_bytes_ -= bytes;
    ::operator delete (address, std::align_val_t{kAlignment});
  });
}

Status EmulatedDevice::Add(Work work) {
  if (capturing_) {
    captured_.push_back(std::move(work));
  } else {
    Append(std::move(work), &pending_);
  }
  return OkStatus();
}

void EmulatedDevice::Append(Work work, Queues* queues) {
  const auto stream = static_cast<size_t>(work.stream);
  if (queues->size() <= stream) queues->resize(stream + 1);
  (*queues)[stream].works.push_back(std::move(work));
}

Status EmulatedDevice::Enqueue(std::string name, std::function<Status()> what, Stream stream) {
  return Add({.stream = stream, .name = std::move(name), .run = std::move(what)});
}

Status EmulatedDevice::EnqueueOperation(std::string name, BeginOperation begin, Duration patience,
                                        Stream stream) {
  return Add({.stream = stream,
              .name = std::move(name),
              .run = nullptr,
              .begin = std::move(begin),
              .patience = patience});
}

StatusOr<std::shared_ptr<void>> EmulatedDevice::Pin(void* memory, int64_t bytes) {
  pinned_bytes_ += bytes;
  return std::shared_ptr<void>(memory, [this, bytes](void*) { pinned_bytes_ -= bytes; });
}

Status EmulatedDevice::Load(const KernelLaunch& launch) {
  loaded_.insert(launch.kernel);
  return OkStatus();
}

Status EmulatedDevice::Launch(const KernelLaunch& launch, Stream stream) {
  if (loaded_.insert(launch.kernel).second) ++late_loads_;
  if (!capturing_) ++launches_;
  return Enqueue(
      fmt::format("{} blocks={}x{} threads={} shared={}", launch.name, launch.shape.blocks_x,
                  launch.shape.blocks_y, launch.shape.threads, launch.shape.shared_bytes),
      [launch] {
        emulator::Launch(launch);
        return OkStatus();
      },
      stream);
}

Status EmulatedDevice::Copy(void* to, const void* from, int64_t bytes, Stream stream) {
  return Enqueue(
      fmt::format("copy bytes={}", bytes),
      [=] {
        std::memcpy(to, from, static_cast<size_t>(bytes));
        return OkStatus();
      },
      stream);
}

Status EmulatedDevice::CopyNow(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return OkStatus();
}

Status EmulatedDevice::Clear(void* to, int64_t bytes, Stream stream) {
  return Enqueue(
      fmt::format("clear bytes={}", bytes),
      [=] {
        std::memset(to, 0, static_cast<size_t>(bytes));
        return OkStatus();
      },
      stream);
}

StatusOr<Stream> EmulatedDevice::MakeStream() {
  if (streams_ > UINT8_MAX) return ResourceExhausted("the device has {} streams", streams_);
  return static_cast<Stream>(streams_++);
}

StatusOr<Event> EmulatedDevice::MakeEvent() {
  events_.emplace_back();
  return static_cast<Event>(events_.size() - 1);
}

Status EmulatedDevice::Record(Event event, Stream stream) {
  return Add({.stream = stream,
              .name = fmt::format("record event={}", event),
              .run = nullptr,
              .begin = nullptr,
              .event = event,
              .version = ++events_[static_cast<size_t>(event)].recorded});
}

Status EmulatedDevice::WaitFor(Event event, Stream stream) {
  return Add({.stream = stream,
              .name = fmt::format("wait event={}", event),
              .run = nullptr,
              .begin = nullptr,
              .event = event,
              .version = events_[static_cast<size_t>(event)].recorded,
              .waits = true});
}

Status EmulatedDevice::Finish(Event event) {
  const EventState& state = events_[static_cast<size_t>(event)];
  if (state.over >= state.recorded) return OkStatus();
  ++host_waits_;
  return RunUntil(event, &pending_);
}

StatusOr<bool> EmulatedDevice::Step(Queue* queue) {
  if (queue->works.empty()) return false;
  Work& work = queue->works.front();
  if (work.event >= 0) {
    int64_t& over = events_[static_cast<size_t>(work.event)].over;
    if (work.waits && over < work.version) return false;
    if (!work.waits) over = work.version;
  } else if (work.begin) {
    if (!queue->in_flight) {
      TROUPE_ASSIGN_OR_RETURN(queue->in_flight, work.begin());
      queue->in_flight->Wait(SystemClock().Now() + work.patience).IgnoreError();
    }
    if (!queue->in_flight->Test()) return false;
    const Status status = queue->in_flight->Wait();
    queue->in_flight.reset();
    if (!status.ok()) return Annotate(status, work.name);
  } else if (Status status = work.run(); !status.ok()) {
    return Annotate(status, work.name);
  }
  queue->works.pop_front();
  return true;
}

StatusOr<bool> EmulatedDevice::StepAny(Queues* queues) {
  const size_t streams = queues->size();
  for (size_t i = 0; i < streams; ++i) {
    const size_t stream = order_ == StreamOrder::kComputeFirst ? i : streams - 1 - i;
    TROUPE_ASSIGN_OR_RETURN(const bool any, Step(&(*queues)[stream]));
    if (any) return true;
  }
  return false;
}

Status EmulatedDevice::RunUntil(Event event, Queues* queues) {
  const EventState* const wanted =
      event == kNoEvent ? nullptr : &events_[static_cast<size_t>(event)];
  while (wanted == nullptr || wanted->over < wanted->recorded) {
    const StatusOr<bool> any = StepAny(queues);
    if (!any.ok()) {
      for (Queue& queue : *queues) {
        if (queue.in_flight) left_.push_back(std::move(*queue.in_flight));
      }
      queues->clear();
      return any.status();
    }
    if (*any) continue;
    // There is nothing to do until an operation ends; it is unknown which one will be first.
    const auto in_flight =
        std::ranges::find_if(*queues, [](const Queue& q) { return q.in_flight.has_value(); });
    if (in_flight != queues->end()) {
      in_flight->in_flight->Wait(SystemClock().Now() + kNap).IgnoreError();
      continue;
    }
    const auto stuck =
        std::ranges::find_if(*queues, [](const Queue& q) { return !q.works.empty(); });
    if (stuck == queues->end()) return OkStatus();
    const Work& work = stuck->works.front();
    return Internal("the {} stream waits forever: {}", Name(work.stream), work.name);
  }
  return OkStatus();
}

}  // namespace troupe::kernels::cuda::emulator
