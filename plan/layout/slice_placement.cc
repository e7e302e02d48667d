#include "plan/layout/slice_placement.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/flag_parser.h"

namespace troupe {
namespace {

constexpr int kMostChipsOfAxis = 1024;   // limit of v1.TpuChip.position
constexpr size_t kMostTextBytes = 4096;  // limit of v1.TpuChip.slice and address

using Position = TpuBounds;

template <typename Repeated>
TpuBounds ToBounds(const Repeated& values) {
  TpuBounds bounds{};
  for (int axis = 0; axis < kTpuAxes; ++axis) bounds[axis] = values[axis];
  return bounds;
}

// The free chips of one slice, and the hosts of the slice.
struct FreeChips {
  TpuBounds host{};
  std::map<Position, const ClusterDevice*> at;

  std::optional<StageSlice> Take(const TpuBounds& bounds);

 private:
  bool IsAligned(const Position& origin, const TpuBounds& bounds) const;
};

bool FreeChips::IsAligned(const Position& origin, const TpuBounds& bounds) const {
  bool in_one_host = true, of_whole_hosts = true;
  for (int axis = 0; axis < kTpuAxes; ++axis) {
    const int first = origin[axis], chips = host[axis];
    in_one_host &= first / chips == (first + bounds[axis] - 1) / chips;
    of_whole_hosts &= first % chips == 0 && bounds[axis] % chips == 0;
  }
  return in_one_host || of_whole_hosts;
}

// The place of the `index`-th rank of a stage in its rectangle: ranks go along x, turn at its end,
// and go back in the next row; planes follow each other in the same way.
Position OnSnake(int index, const TpuBounds& bounds) {
  Position place{};
  for (int axis = 0, rest = index; axis < kTpuAxes; ++axis) {
    place[axis] = rest % bounds[axis];
    rest /= bounds[axis];
    if (rest % 2 == 1) place[axis] = bounds[axis] - 1 - place[axis];
  }
  return place;
}

std::optional<StageSlice> FreeChips::Take(const TpuBounds& bounds) {
  const int ranks = bounds[0] * bounds[1] * bounds[2];
  for (const auto& [origin, first] : at) {
    if (!IsAligned(origin, bounds)) continue;
    StageSlice stage{.bounds = bounds, .host_bounds = {}, .chips = {}, .tasks = {}};
    for (int axis = 0; axis < kTpuAxes; ++axis)
      stage.host_bounds[axis] = std::min(bounds[axis], host[axis]);
    for (int rank = 0; rank < ranks; ++rank) {
      const Position place = OnSnake(rank, bounds);
      const auto chip = at.find({origin[0] + place[0], origin[1] + place[1], origin[2] + place[2]});
      if (chip == at.end()) break;
      stage.chips.push_back(chip->second);
      stage.tasks.push_back(place[0] + bounds[0] * (place[1] + bounds[1] * place[2]));
    }
    if (std::ssize(stage.chips) < ranks) continue;
    for (const ClusterDevice* const chip : stage.chips)
      at.erase(ToBounds(chip->device.chip().position()));
    return stage;
  }
  return std::nullopt;
}

// Fills `current`, the slice that was taken from last, before another one; null: none was.
std::optional<StageSlice> TakeFromAny(std::map<std::string, FreeChips>* slices, int ranks,
                                      FreeChips** current) {
  std::vector<FreeChips*> by_room;
  for (auto& [name, free] : *slices) by_room.push_back(&free);
  std::ranges::stable_sort(by_room, std::greater(),
                           [](const FreeChips* free) { return free->at.size(); });
  if (*current != nullptr) by_room.insert(by_room.begin(), *current);
  for (FreeChips* const free : by_room) {
    for (const TpuBounds& bounds : RectanglesOf(ranks)) {
      if (std::optional<StageSlice> taken = free->Take(bounds)) {
        *current = free;
        return taken;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<TpuBounds> RectanglesOf(int chips) {
  std::vector<TpuBounds> rectangles;
  if (chips < 1 || !std::has_single_bit(static_cast<unsigned>(chips))) return rectangles;
  for (int x = 1; x <= chips; x *= 2) {
    for (int y = 1; x * y <= chips; y *= 2) rectangles.push_back({x, y, chips / (x * y)});
  }
  std::ranges::stable_sort(rectangles, {},
                           [](const TpuBounds& bounds) { return std::ranges::max(bounds); });
  return rectangles;
}

StatusOr<std::vector<StageSlice>> PlaceStages(const std::vector<const ClusterDevice*>& chips,
                                              int stages, int ranks) {
  if (RectanglesOf(ranks).empty()) {
    return FailedPrecondition(
        "a pipeline stage has {} ranks, but on TPUs they are a slice, whose number of chips is a "
        "power of two",
        ranks);
  }
  std::map<std::string, FreeChips> slices;
  for (const ClusterDevice* const device : chips) {
    const v1::TpuChip& chip = device->device.chip();
    FreeChips& free = slices[chip.slice()];
    free.host = ToBounds(chip.host_chips());
    free.at.emplace(ToBounds(chip.position()), device);
  }
  std::vector<StageSlice> placed;
  FreeChips* current = nullptr;
  for (int stage = 0; stage < stages; ++stage) {
    std::optional<StageSlice> taken = TakeFromAny(&slices, ranks, &current);
    if (!taken) {
      return FailedPrecondition(
          "pipeline stage {} of {} has {} ranks, which need a rectangle of {} free chips with a "
          "power of two of chips along each axis, within one host or of whole hosts: {} chips are "
          "free in {} slices",
          stage, stages, ranks, ranks, chips.size(), slices.size());
    }
    placed.push_back(*std::move(taken));
  }
  return placed;
}

v1::SliceProcess ToProto(const StageSlice& stage, int rank_in_stage) {
  v1::SliceProcess process;
  process.mutable_bounds()->Assign(stage.bounds.begin(), stage.bounds.end());
  process.mutable_host_bounds()->Assign(stage.host_bounds.begin(), stage.host_bounds.end());
  process.set_task(stage.tasks[static_cast<size_t>(rank_in_stage)]);
  process.set_address(stage.chips[static_cast<size_t>(rank_in_stage)]->device.chip().address());
  return process;
}

StatusOr<ClusterView> ImaginedSlice(const TpuModel& model, int count) {
  TROUPE_ASSIGN_OR_RETURN(const std::string name, SliceFor(model, count * model.devices_per_chip));
  const TpuBounds bounds = BoundsOfSlice(name);
  const int chips = bounds[0] * bounds[1] * bounds[2];
  ClusterView cluster = ImaginedCluster(chips, "xla");
  for (int i = 0; i < chips; ++i) {
    v1::Device& device = cluster.free_devices[static_cast<size_t>(i)].device;
    device.mutable_kind()->set_model(std::string(model.model));
    v1::TpuChip& chip = *device.mutable_chip();
    chip.add_position(i % bounds[0]);
    chip.add_position(i / bounds[0] % bounds[1]);
    chip.add_position(i / (bounds[0] * bounds[1]));
    for (const int chips_of_host : {2, 2, 1}) chip.add_host_chips(chips_of_host);
  }
  return cluster;
}

Status CheckTpuChip(const v1::TpuChip& chip) {
  if (chip.position_size() != kTpuAxes || chip.host_chips_size() != kTpuAxes) {
    return InvalidArgument("position has {} numbers and host_chips {}, not {} each",
                           chip.position_size(), chip.host_chips_size(), kTpuAxes);
  }
  for (int axis = 0; axis < kTpuAxes; ++axis) {
    if (const int at = chip.position(axis); at < 0 || at >= kMostChipsOfAxis) {
      return InvalidArgument("position[{}] is {}, not from 0 to {}", axis, at,
                             kMostChipsOfAxis - 1);
    }
    const int extent = chip.host_chips(axis);
    if (extent < 1 || extent > kMostChipsOfAxis ||
        !std::has_single_bit(static_cast<unsigned>(extent))) {
      return InvalidArgument("host_chips[{}] is {}, not a power of two up to {}", axis, extent,
                             kMostChipsOfAxis);
    }
  }
  if (chip.slice().size() > kMostTextBytes || chip.address().size() > kMostTextBytes)
    return InvalidArgument("slice or address has more than {} bytes", kMostTextBytes);
  // Addresses are given to libtpu as a list.
  if (chip.address().find(',') != std::string::npos)
    return InvalidArgument("address {} has a comma", chip.address());
  return CheckHostPort("address", chip.address(), 1);
}

}  // namespace troupe
