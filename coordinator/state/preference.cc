#include "coordinator/state/preference.h"

#include <algorithm>
#include <tuple>

namespace troupe {
namespace {

// A device that is not clean.
struct Blamed {
  Standing standing = Standing::kSuspect;
  double weight = 0;
  const ClusterDevice* device = nullptr;

  bool IsAsBadAs(const Blamed& other) const {
    return standing == other.standing && weight == other.weight;
  }
};

}  // namespace

int CountClean(const ClusterView& view, const BlameBook& book, MonotonicTime now,
               Duration half_life) {
  return static_cast<int>(std::count_if(
      view.free_devices.begin(), view.free_devices.end(), [&](const ClusterDevice& device) {
        return StandingOf(book, device.worker, device.device.index(), now, half_life) ==
               Standing::kClean;
      }));
}

std::vector<ClusterView> ViewsByPreference(const ClusterView& view, int ranks,
                                           const BlameBook& book, MonotonicTime now,
                                           Duration half_life) {
  ClusterView chosen;
  std::vector<Blamed> blamed;
  for (const ClusterDevice& device : view.free_devices) {
    const int index = device.device.index();
    const Standing standing = StandingOf(book, device.worker, index, now, half_life);
    if (standing == Standing::kClean) {
      chosen.free_devices.push_back(device);
      continue;
    }
    const HostBlame& host = book.at(device.worker);
    const double weight =
        WeightOf(host, index, now, half_life) + WeightOf(host, kWholeHost, now, half_life);
    blamed.push_back({standing, weight, &device});
  }
  std::stable_sort(blamed.begin(), blamed.end(), [](const Blamed& a, const Blamed& b) {
    return std::tie(a.standing, a.weight) < std::tie(b.standing, b.weight);
  });

  std::vector<ClusterView> views;
  const auto enough = [&] { return static_cast<int>(chosen.free_devices.size()) >= ranks; };
  const auto offer = [&] {
    if (enough() && chosen.free_devices.size() < view.free_devices.size()) views.push_back(chosen);
  };
  offer();
  if (!enough()) {
    size_t next = 0;
    while (next < blamed.size() && !enough()) chosen.free_devices.push_back(*blamed[next++].device);
    offer();
    // Others that are as bad as the last of them may hold the plan where these do not.
    const size_t least = chosen.free_devices.size();
    for (; next > 0 && next < blamed.size() && blamed[next].IsAsBadAs(blamed[next - 1]); ++next)
      chosen.free_devices.push_back(*blamed[next].device);
    if (chosen.free_devices.size() > least) offer();
  }
  views.push_back(view);
  return views;
}

StatusOr<v1::Plan> PlaceByPreference(const Planner& planner, const v1::JobSpec& spec,
                                     const v1::Plan& plan, const std::vector<ClusterView>& views) {
  for (size_t i = 0; i + 1 < views.size(); ++i) {
    StatusOr<v1::Plan> placed = planner.place(spec, plan, views[i]);
    if (placed.ok()) return placed;
  }
  return planner.place(spec, plan, views.back());
}

ClusterView WithoutSetAside(const ClusterView& view, const Fleet& fleet) {
  ClusterView rest;
  for (const ClusterDevice& device : view.free_devices) {
    const int index = device.device.index();
    const auto blame = fleet.blame.find(device.worker);
    const bool set_aside = blame != fleet.blame.end() && IsSetAside(blame->second, index);
    if (set_aside && !fleet.leases.contains({device.worker, index})) continue;
    rest.free_devices.push_back(device);
  }
  return rest;
}

}  // namespace troupe
