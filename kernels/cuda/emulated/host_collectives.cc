#include "kernels/cuda/emulated/host_collectives.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::kernels::cuda::emulator {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20);

std::optional<Reduction> ReductionOf(ElementType type, DeviceReduction reduction) {
  if (reduction == DeviceReduction::kMax) {
    if (type == ElementType::kFloat32) return MaxFloat32();
    return std::nullopt;
  }
  switch (type) {
    case ElementType::kFloat32:
      return SumFloat32();
    case ElementType::kBfloat16:
      return SumBfloat16();
    case ElementType::kFloat64:
      return SumFloat64();
  }
  return std::nullopt;
}

size_t Total(std::span<const size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
}

std::vector<size_t> CopyOf(std::span<const size_t> sizes) { return {sizes.begin(), sizes.end()}; }

}  // namespace

Status HostCollectives::Enqueue(std::string_view name, size_t bytes, Duration patience,
                                std::function<CollectiveHandle()> begin, DeviceStream stream) {
  if (aborted_.load()) return Unavailable("{}: {} is aborted", name, host_.name());
  return device_.EnqueueOperation(
      fmt::format("{} group={} bytes={}", name, host_.name(), bytes),
      [this, begin = std::move(begin)]() -> StatusOr<CollectiveHandle> {
        if (aborted_.load()) return Unavailable("{} is aborted", host_.name());
        return begin();
      },
      patience, static_cast<Stream>(stream));
}

Status HostCollectives::AllReduce(const void* input, void* output, size_t count, ElementType type,
                                  DeviceReduction reduction, Purpose purpose, DeviceStream stream) {
  const std::optional<Reduction> combine = ReductionOf(type, reduction);
  if (!combine)
    return InvalidArgument("a reduction of elements of {} bytes is not supported", SizeOf(type));
  const size_t bytes = count * SizeOf(type);
  return Enqueue(
      "all_reduce", bytes, kPatience,
      [=, this] {
        if (input != output) std::memcpy(output, input, bytes);
        return host_.StartAllReduce(output, count, *combine, purpose);
      },
      stream);
}

Status HostCollectives::ReduceScatter(const void* input, void* output,
                                      std::span<const size_t> counts, ElementType type,
                                      Purpose purpose, DeviceStream stream) {
  const Reduction sum = *ReductionOf(type, DeviceReduction::kSum);
  const size_t bytes = Total(counts) * SizeOf(type);
  return Enqueue(
      "reduce_scatter", bytes, kPatience,
      // The host's reduce-scatter overwrites its data, which must live until it completes; `counts`
      // too.
      [=, this, counts = CopyOf(counts), data = std::make_shared<std::vector<std::byte>>()] {
        const auto* const begin = static_cast<const std::byte*>(input);
        data->assign(begin, begin + bytes);
        return host_.StartReduceScatter(data->data(), output, counts, sum, purpose);
      },
      stream);
}

Status HostCollectives::AllGather(const void* input, void* output, std::span<const size_t> bytes,
                                  Purpose purpose, DeviceStream stream) {
  return Enqueue(
      "all_gather", Total(bytes), kPatience,
      [=, this, bytes = CopyOf(bytes)] {
        return host_.StartAllGather(input, output, bytes, purpose);
      },
      stream);
}

Status HostCollectives::AllToAll(const void* input, void* output,
                                 std::span<const size_t> send_bytes,
                                 std::span<const size_t> receive_bytes, Purpose purpose,
                                 DeviceStream stream) {
  return Enqueue(
      "all_to_all", Total(send_bytes), kPatience,
      [=, this, send = CopyOf(send_bytes), receive = CopyOf(receive_bytes)] {
        return host_.StartAllToAll(input, output, send, receive, purpose);
      },
      stream);
}

Status HostCollectives::Send(const void* data, size_t bytes, int to, Purpose purpose,
                             DeviceStream stream) {
  return Enqueue(
      "send", bytes, Duration::zero(),
      [=, this] { return host_.StartSend(data, bytes, to, purpose); }, stream);
}

Status HostCollectives::Receive(void* data, size_t bytes, int from, Purpose purpose,
                                DeviceStream stream) {
  return Enqueue(
      "receive", bytes, Duration::zero(),
      [=, this] { return host_.StartReceive(data, bytes, from, purpose); }, stream);
}

}  // namespace troupe::kernels::cuda::emulator
