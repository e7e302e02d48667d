#include "kernels/cuda/kernels/experts/sort_by_expert.h"

#include "kernels/cuda/device_code/block_scan.h"
#include "kernels/cuda/device_code/shapes.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * kWarp;
constexpr int64_t kRun = 512;             // assignments per warp
constexpr int64_t kPart = kWarps * kRun;  // assignments per block

int64_t PartsOf(int64_t assignments) { return (assignments + kPart - 1) / kPart; }

// The expert of assignment i, relative to first_expert; -1 if the assignment gets no row.
TROUPE_DEVICE int32_t ExpertOf(const ExpertSortArgs& args, int64_t i) {
  if (i >= args.assignments || (args.kept != nullptr && args.kept[i] < 0)) return -1;
  const int64_t expert = args.expert_ids[i] - args.first_expert;
  return expert >= 0 && expert < args.experts ? static_cast<int32_t>(expert) : -1;
}

// before[e, p] = number of assignments of e in part p.
TROUPE_KERNEL void CountByExpertKernel(ExpertSortArgs args) {
  TROUPE_SHARED int32_t counts[model::kMaxExperts];
  for (int64_t e = ThreadIndex(); e < args.experts; e += kThreads) counts[e] = 0;
  SyncBlock();
  const int64_t first = BlockIndex().x * kPart;
  for (int64_t i = first + ThreadIndex(); i < first + kPart; i += kThreads) {
    if (const int32_t e = ExpertOf(args, i); e >= 0) AtomicAdd(counts + e, 1);
  }
  SyncBlock();
  for (int64_t e = ThreadIndex(); e < args.experts; e += kThreads) {
    args.before[e * Blocks().x + BlockIndex().x] = counts[e];
  }
}

struct SumByExpertArgs {
  ExpertSortArgs order;
  int64_t parts;
};

// before[e, p] = number of assignments of e in the parts before p; counts[e] = number of them that
// get a row. One warp per expert.
TROUPE_KERNEL void SumByExpertKernel(SumByExpertArgs args) {
  const int64_t e = int64_t{BlockIndex().x} * kWarps + Warp();
  if (e >= args.order.experts) return;
  int32_t* const before = args.order.before + e * args.parts;
  int32_t sum = 0;
  for (int64_t first = 0; first < args.parts; first += kWarp) {
    const int64_t part = first + Lane();
    const int32_t count = part < args.parts ? before[part] : 0;
    const int32_t through = InclusiveWarpScan(count);
    if (part < args.parts) before[part] = sum + through - count;
    sum += ShuffleFrom(through, kWarp - 1);
  }
  const int64_t capacity = args.order.capacity;
  if (Lane() == 0) {
    args.order.counts[e] = capacity > 0 && sum > capacity ? static_cast<int32_t>(capacity) : sum;
  }
}

TROUPE_KERNEL void PlaceByExpertKernel(ExpertSortArgs args) {
  TROUPE_SHARED int32_t next[kWarps][model::kMaxExperts];  // assignments before each warp's run
  TROUPE_SHARED int32_t begins[model::kMaxExperts];        // first row of each expert
  TROUPE_SHARED int32_t scanned[kThreads];
  TROUPE_SHARED int32_t experts[kWarps][kWarp];
  const int warp = Warp(), lane = Lane();
  const int64_t first = BlockIndex().x * kPart + warp * kRun;
  for (int64_t e = ThreadIndex(); e < args.experts; e += kThreads) {
    begins[e] = args.counts[e];
    for (auto& counts : next) counts[e] = 0;
  }
  SyncBlock();
  for (int64_t i = first + lane; i < first + kRun; i += kWarp) {
    if (const int32_t e = ExpertOf(args, i); e >= 0) AtomicAdd(next[warp] + e, 1);
  }
  ExclusiveScan<kThreads>(begins, args.experts, scanned);
  for (int64_t e = ThreadIndex(); e < args.experts; e += kThreads) {
    int32_t before = args.before[e * Blocks().x + BlockIndex().x];
    for (auto& counts : next) {
      const int32_t count = counts[e];
      counts[e] = before;
      before += count;
    }
  }
  SyncBlock();
  // Each assignment follows those of its expert in lower lanes; every lane counts them.
  for (int64_t i = first + lane; i - lane < first + kRun && i - lane < args.assignments;
       i += kWarp) {
    const int32_t e = ExpertOf(args, i);
    experts[warp][lane] = e;
    SyncWarp();
    int32_t before = 0;
    bool last = true;
    for (int other = 0; other < kWarp; ++other) {
      if (experts[warp][other] != e || other == lane) continue;
      if (other < lane) ++before;
      if (other > lane) last = false;
    }
    const int32_t place = e >= 0 ? next[warp][e] + before : 0;
    SyncWarp();
    if (e >= 0 && last) next[warp][e] = place + 1;
    const bool has_row = e >= 0 && (args.capacity == 0 || place < args.capacity);
    if (i < args.assignments) args.slots[i] = has_row ? begins[e] + place : -1;
  }
}

}  // namespace

int64_t ExpertSortScratchBytes(int64_t assignments, int64_t experts) {
  return PartsOf(assignments) * experts * static_cast<int64_t>(sizeof(int32_t));
}

std::array<KernelLaunch, 3> SortByExpert(const ExpertSortArgs& args) {
  const int64_t parts = PartsOf(args.assignments);
  const LaunchShape of_parts{.blocks_x = static_cast<unsigned>(parts), .threads = kThreads};
  return {MakeLaunch("count_by_expert", &CountByExpertKernel, of_parts, args),
          MakeLaunch("sum_by_expert", &SumByExpertKernel,
                     ThreadsFor(args.experts * kWarp, kThreads), SumByExpertArgs{args, parts}),
          MakeLaunch("place_by_expert", &PlaceByExpertKernel, of_parts, args)};
}

}  // namespace troupe::kernels::cuda
