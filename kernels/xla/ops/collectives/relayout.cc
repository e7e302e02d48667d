// Each rank holds two chunks of every sample and sends each to the rank that holds it in the new
// layout. The moves are two permutations of the ranks, with one chunk per rank in each.
#include <array>

#include "kernels/xla/ops/collectives/chunk_moves.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {

Status Relayout(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  const auto& attributes = lowering.attributes<model::RelayoutAttributes>();
  Function& text = lowering.text;
  const ChunkMoves moves =
      ChunkMoves::Of(attributes.from(), attributes.to(), GroupSizeOf(lowering));
  TROUPE_RETURN_IF_ERROR(ExpectEqualExtents(lowering));
  const Tensor x = lowering.In(0);
  const int64_t chunk = x.shape[0] / (2 * attributes.samples);
  const Tensor places =
      text.Transpose(text.Reshape(x, {attributes.samples, 2, chunk, x.shape[1]}), {1, 0, 2, 3});
  const Function::Groups groups = PartitionGroups(lowering);
  std::array<Tensor, 2> arrived;
  for (int step = 0; step < 2; ++step) {
    std::vector<std::pair<int, int>> pairs;
    for (const std::vector<int>& group : groups) {
      for (size_t i = 0; i < group.size(); ++i)
        pairs.emplace_back(group[i], group[moves.steps[step][i].to]);
    }
    const Tensor from = lowering.Number(Element::kI32, [&](const Lowering& rank) {
      return moves.steps[step][IndexInGroupOf(rank)].from_place;
    });
    arrived[step] = text.Permute(text.SliceAt(places, from, 1), pairs);
  }
  // Whether the first step brought the chunk of the second place.
  const Tensor swapped = text.Compare(
      "EQ",
      lowering.Number(
          Element::kI32,
          [&](const Lowering& rank) { return moves.ArrivesAt(0, IndexInGroupOf(rank)); }),
      1);
  const Tensor both = text.Concatenate(
      {text.Select(swapped, arrived[1], arrived[0]), text.Select(swapped, arrived[0], arrived[1])},
      0);
  lowering.Out(0, text.Transpose(both, {1, 0, 2, 3}));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
