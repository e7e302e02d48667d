#include "checkpoint/write/ownership.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// One slice with all its holders.
struct Shared {
  // Index in the list of each holder, in the order of the holders.
  std::vector<size_t> index_on_holder;
  int64_t bytes = 0;
  int64_t rows = 0;
};

int64_t RowCount(const GlobalSlice& slice) {
  return slice.box.shape.empty() ? 1 : slice.box.shape[0];
}

// Distributes `work` over `loads` so that the highest resulting load is as low as possible, and
// returns the share of each (water filling).
std::vector<int64_t> Pour(const std::vector<int64_t>& loads, int64_t work) {
  std::vector<int64_t> sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  // The level over the k lowest loads is (work + their sum) / k; the right k is the one with a
  // level at least the k-th load but not above the next.
  int64_t sum = 0, level = 0;
  for (size_t k = 1; k <= sorted.size(); ++k) {
    sum += sorted[k - 1];
    level = (work + sum) / static_cast<int64_t>(k);
    if (k == sorted.size() || level <= sorted[k]) break;
  }
  std::vector<int64_t> share(loads.size());
  int64_t left = work;
  for (size_t i = 0; i < loads.size(); ++i) {
    share[i] = std::clamp<int64_t>(level - loads[i], 0, left);
    left -= share[i];
  }
  // The remainder of the rounding, less than one byte per holder, goes to one of the lowest loads.
  share[static_cast<size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin())] += left;
  return share;
}

// Returns the row at which to cut a share that ends `target` bytes into the slice: the nearest row,
// or an end of the slice if the cut would produce a part that is too small.
int64_t CutRow(const Shared& shared, int64_t target, int64_t split_bytes) {
  if (target <= 0) return 0;
  if (target >= shared.bytes) return shared.rows;
  const int64_t row_bytes = shared.bytes / shared.rows;
  int64_t row = (target + row_bytes / 2) / row_bytes;
  if (row * row_bytes < split_bytes || shared.bytes - row * row_bytes < split_bytes) {
    row = target * 2 < shared.bytes ? 0 : shared.rows;
  }
  return row;
}

// The slices that one set of ranks holds, in the order of their names and offsets.
struct Group {
  std::vector<int> ranks;
  std::vector<Shared> slices;
};

// Groups the slices by their set of holders, smallest sets first.
std::vector<Group> GroupByHolders(const std::vector<std::vector<GlobalSlice>>& slices_of_rank) {
  using Key = std::tuple<std::string, Extents, Extents>;
  struct Holders {
    std::vector<int> ranks;
    Shared shared;
  };
  std::map<Key, Holders> held;
  for (size_t rank = 0; rank < slices_of_rank.size(); ++rank) {
    for (size_t i = 0; i < slices_of_rank[rank].size(); ++i) {
      const GlobalSlice& slice = slices_of_rank[rank][i];
      const auto bytes = DenseBytes(slice.box.shape, slice.dtype);
      TROUPE_CHECK(bytes.ok(), "slice of {}", slice.name);
      // An uneven split can produce an empty slice, which nobody writes; a tensor that is empty as
      // a whole is written.
      if (*bytes == 0 && *Elements(slice.global_shape) != 0) continue;
      Holders& holders = held[{slice.name, slice.box.offset, slice.box.shape}];
      if (!holders.ranks.empty() && holders.ranks.back() == static_cast<int>(rank)) continue;
      holders.ranks.push_back(static_cast<int>(rank));
      holders.shared.index_on_holder.push_back(i);
      holders.shared.bytes = *bytes;
      holders.shared.rows = RowCount(slice);
    }
  }
  std::map<std::pair<size_t, std::vector<int>>, Group> groups;
  for (auto& [key, holders] : held) {
    Group& group = groups[{holders.ranks.size(), holders.ranks}];
    group.ranks = holders.ranks;
    group.slices.push_back(std::move(holders.shared));
  }
  std::vector<Group> ordered;
  for (auto& [key, group] : groups) ordered.push_back(std::move(group));
  return ordered;
}

// Distributes the rows of the group's slices over its ranks and adds their bytes to `loads`, which
// are the bytes that each rank already has to write.
void AssignGroup(const Group& group, int64_t split_bytes, std::vector<int64_t>* loads,
                 std::vector<std::vector<OwnedRows>>* owned) {
  int64_t work = 0;
  for (const Shared& shared : group.slices) work += shared.bytes;
  std::vector<int64_t> group_loads;
  for (const int rank : group.ranks) group_loads.push_back((*loads)[static_cast<size_t>(rank)]);
  const std::vector<int64_t> shares = Pour(group_loads, work);

  size_t holder = 0;
  int64_t share_end = shares[0];  // in bytes from the start of the group's first slice
  int64_t begin = 0;
  for (const Shared& shared : group.slices) {
    if (shared.bytes == 0) {
      (*owned)[static_cast<size_t>(group.ranks[0])].push_back(
          {shared.index_on_holder[0], 0, shared.rows});
      continue;
    }
    int64_t row = 0;
    do {
      int64_t end_row = shared.rows;
      if (holder + 1 < group.ranks.size()) {
        end_row = std::max(row, CutRow(shared, share_end - begin, split_bytes));
      }
      if (end_row > row) {
        const size_t rank = static_cast<size_t>(group.ranks[holder]);
        (*owned)[rank].push_back({shared.index_on_holder[holder], row, end_row - row});
        (*loads)[rank] += shared.bytes / shared.rows * (end_row - row);
      }
      row = end_row;
      if (row < shared.rows) share_end += shares[++holder];
    } while (row < shared.rows);
    begin += shared.bytes;
  }
}

}  // namespace

std::vector<std::vector<OwnedRows>> AssignOwners(
    const std::vector<std::vector<GlobalSlice>>& slices_of_rank, int64_t split_bytes) {
  std::vector<int64_t> loads(slices_of_rank.size(), 0);
  std::vector<std::vector<OwnedRows>> owned(slices_of_rank.size());
  for (const Group& group : GroupByHolders(slices_of_rank)) {
    AssignGroup(group, split_bytes, &loads, &owned);
  }
  for (std::vector<OwnedRows>& rows : owned) {
    std::sort(rows.begin(), rows.end(), [](const OwnedRows& a, const OwnedRows& b) {
      return std::tie(a.slice, a.first_row) < std::tie(b.slice, b.first_row);
    });
  }
  return owned;
}

GlobalSlice RowsOf(const GlobalSlice& whole, const OwnedRows& owned) {
  GlobalSlice part = whole;
  if (!whole.box.shape.empty()) {
    part.box.offset[0] += owned.first_row;
    part.box.shape[0] = owned.rows;
  }
  return part;
}

int64_t ByteOffsetOf(const GlobalSlice& whole, const OwnedRows& owned) {
  const int64_t rows = RowCount(whole);
  if (rows == 0) return 0;
  return *DenseBytes(whole.box.shape, whole.dtype) / rows * owned.first_row;
}

}  // namespace troupe
