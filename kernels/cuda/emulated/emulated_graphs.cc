// Graphs of the emulated device, with CUDA's requirements on a capture.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/cuda/emulated/emulated_device.h"

namespace troupe::kernels::cuda::emulator {

Status EmulatedDevice::BeginCapture() {
  if (capturing_) return Internal("a capture is in progress");
  capturing_ = true;
  captured_.clear();
  return OkStatus();
}

StatusOr<Graph> EmulatedDevice::EndCapture() {
  if (!capturing_) return Internal("no capture is in progress");
  capturing_ = false;
  Works captured = std::exchange(captured_, {});
  TROUPE_RETURN_IF_ERROR(CheckCapture(captured));
  graphs_.push_back(std::move(captured));
  ++graphs_held_;
  return static_cast<Graph>(graphs_.size() - 1);
}

Status EmulatedDevice::CheckCapture(const Works& works) const {
  const auto compute = static_cast<size_t>(Stream::kCompute);
  const auto streams = static_cast<size_t>(streams_);
  // For each stream, the number of its works that are known to precede a point in a stream, or an
  // event.
  using Clock = std::vector<int>;
  // Absent: the stream does not wait for the compute stream yet.
  std::vector<std::optional<Clock>> at(streams);
  std::map<Event, Clock> recorded;
  Clock counts(streams);
  at[compute] = Clock(streams);
  for (const Work& work : works) {
    const auto stream = static_cast<size_t>(work.stream);
    if (work.waits) {
      const auto found = recorded.find(work.event);
      if (found == recorded.end()) {
        if (work.version == 0) continue;
        return Internal("{}: it was recorded before the capture", work.name);
      }
      if (!at[stream]) at[stream] = Clock(streams);
      std::ranges::transform(*at[stream], found->second, at[stream]->begin(),
                             [](int a, int b) { return std::max(a, b); });
      continue;
    }
    if (!at[stream])
      return Internal("the {} stream is not captured: {}", Name(work.stream), work.name);
    if (work.event >= 0) {
      recorded[work.event] = *at[stream];
    } else {
      (*at[stream])[stream] = ++counts[stream];
    }
  }
  for (size_t stream = 0; stream < streams; ++stream) {
    if ((*at[compute])[stream] != counts[stream]) {
      return Internal("the compute stream does not wait for all captured work of the {} stream",
                      Name(static_cast<Stream>(stream)));
    }
  }
  return OkStatus();
}

Status EmulatedDevice::LaunchGraph(Graph graph) {
  ++graph_launches_;
  return Enqueue(
      fmt::format("graph {}", graph),
      [this, graph] {
        ++graphs_done_;
        // The events of a graph belong to it: none is over when the graph starts.
        Queues queues;
        for (const Work& work : graphs_[static_cast<size_t>(graph)]) {
          if (work.event >= 0) events_[static_cast<size_t>(work.event)].over = 0;
          Append(work, &queues);
        }
        return RunUntil(kNoEvent, &queues);
      },
      Stream::kCompute);
}

std::string EmulatedDevice::ToText(Graph graph) const {
  std::string text;
  for (const Work& work : graphs_[static_cast<size_t>(graph)]) {
    text += fmt::format("{} {}\n", Name(work.stream), work.name);
  }
  return text;
}

}  // namespace troupe::kernels::cuda::emulator
