#include "kernels/cuda/emulated/emulated_device.h"

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "kernels/cuda/emulated/launch.h"

namespace troupe::kernels::cuda::emulator {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

StatusOr<DeviceMemory> EmulatedDevice::Allocate(int64_t bytes) {
  auto* const memory = static_cast<char*>(
      ::operator new(static_cast<size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow));
  if (memory == nullptr) return ResourceExhausted("{} bytes of emulated memory cannot be had", bytes);
  std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  allocated_bytes_ += bytes;
  return DeviceMemory(memory, [this, bytes](char* address) {
    allocated_bytes_ -= bytes;
    ::operator delete(address, std::align_val_t{kAlignment});
  });
}

Status EmulatedDevice::Add(Work work) {
  (capturing_ ? captured_ : pending_).push_back(std::move(work));
  return OkStatus();
}

Status EmulatedDevice::Enqueue(std::string name, std::function<Status()> what, Stream stream) {
  return Add({.stream = stream, .name = std::move(name), .run = std::move(what)});
}

Status EmulatedDevice::Launch(const KernelLaunch& launch, Stream stream) {
  if (!capturing_) ++launches_;
  return Enqueue(fmt::format("{} blocks={}x{} threads={} shared={}", launch.name, launch.shape.blocks_x,
                        launch.shape.blocks_y, launch.shape.threads, launch.shape.shared_bytes),
                 [launch] {
                   emulator::Launch(launch);
                   return OkStatus();
                 },
                 stream);
}

Status EmulatedDevice::Copy(void* to, const void* from, int64_t bytes, Stream stream) {
  return Enqueue(fmt::format("copy bytes={}", bytes),
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
  return Enqueue(fmt::format("clear bytes={}", bytes),
                 [=] {
                   std::memset(to, 0, static_cast<size_t>(bytes));
                   return OkStatus();
                 },
                 stream);
}

StatusOr<Event> EmulatedDevice::MakeEvent() {
  events_.emplace_back();
  return static_cast<Event>(events_.size() - 1);
}

Status EmulatedDevice::Record(Event event, Stream stream) {
  return Add({.stream = stream,
              .name = fmt::format("record event={}", event),
              .run = nullptr,
              .event = event,
              .version = ++events_[static_cast<size_t>(event)].recorded});
}

Status EmulatedDevice::WaitFor(Event event, Stream stream) {
  return Add({.stream = stream,
              .name = fmt::format("wait event={}", event),
              .run = nullptr,
              .event = event,
              .version = events_[static_cast<size_t>(event)].recorded,
              .waits = true});
}

Status EmulatedDevice::BeginCapture() {
  if (capturing_) return Internal("a capture is under way");
  capturing_ = true;
  captured_.clear();
  return OkStatus();
}

StatusOr<Graph> EmulatedDevice::EndCapture() {
  if (!capturing_) return Internal("no capture is under way");
  capturing_ = false;
  graphs_.push_back(std::exchange(captured_, {}));
  return static_cast<Graph>(graphs_.size() - 1);
}

Status EmulatedDevice::LaunchGraph(Graph graph) {
  ++graph_launches_;
  return Enqueue(fmt::format("graph {}", graph),
                 [this, graph] {
                   // Events within a graph are its own: none is over when it begins.
                   Works works = graphs_[static_cast<size_t>(graph)];
                   for (const Work& work : works) {
                     if (work.event >= 0) events_[static_cast<size_t>(work.event)].over = 0;
                   }
                   return RunAll(std::move(works));
                 },
                 Stream::kCompute);
}

Status EmulatedDevice::Finish(Event event) {
  const EventState& state = events_[static_cast<size_t>(event)];
  if (state.over >= state.recorded) return OkStatus();
  ++host_waits_;
  return RunAll(std::exchange(pending_, {}));
}

Status EmulatedDevice::RunAll(Works works) {
  std::array<std::deque<Work>, kStreams> streams;
  for (Work& work : works) streams[static_cast<size_t>(work.stream)].push_back(std::move(work));
  const auto step = [&](std::deque<Work>& stream) -> StatusOr<bool> {
    if (stream.empty()) return false;
    Work& work = stream.front();
    if (work.event >= 0) {
      int64_t& over = events_[static_cast<size_t>(work.event)].over;
      if (work.waits && over < work.version) return false;
      if (!work.waits) over = work.version;
    } else if (Status status = work.run(); !status.ok()) {
      return Annotate(status, work.name);
    }
    stream.pop_front();
    return true;
  };
  while (true) {
    bool any = false;
    for (int i = 0; i < kStreams && !any; ++i) {
      const int stream = order_ == StreamOrder::kComputeFirst ? i : kStreams - 1 - i;
      TROUPE_ASSIGN_OR_RETURN(any, step(streams[static_cast<size_t>(stream)]));
    }
    if (any) continue;
    for (const std::deque<Work>& stream : streams) {
      if (!stream.empty()) {
        return Internal("the {} stream waits for ever: {}", Name(stream.front().stream),
                        stream.front().name);
      }
    }
    return OkStatus();
  }
}

std::string EmulatedDevice::ToText(Graph graph) const {
  std::string text;
  for (const Work& work : graphs_[static_cast<size_t>(graph)]) {
    text += fmt::format("{} {}\n", Name(work.stream), work.name);
  }
  return text;
}

}  // namespace troupe::kernels::cuda::emulator
