// One matmul for the rows of each count; count c belongs to expert c mod L.
//
// Loops over the counts and, in each, over tiles of its rows: a tile is a matmul of its rows
// with one expert's weights. The last tile of a count is computed whole and stored in part, so the
// work is that of the counted rows plus less than one tile for each count, and each count copies
// its expert's weights once. One expert needs no loop.
#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kLeastTile = 128, kMostTile = 512;
// A tile has about a quarter of a count's expected rows, so that few rows are computed in vain.
constexpr int64_t kTilesOfCount = 4;

using State = Function::State;

struct Groups {
  Function& text;
  Tensor counts;    // i32[C]
  int64_t experts;  // L
  int64_t rows;     // M
  int64_t tile;     // rows
};

Groups GroupsOf(const Lowering& lowering) {
  const auto& attributes = lowering.attributes<model::GroupedAttributes>();
  const Tensor counts = lowering.In(2);
  const int64_t rows = lowering.Extent(0, 0);
  const int64_t wanted =
      std::max<int64_t>(attributes.expected_rows / (counts.shape[0] * kTilesOfCount), 1);
  const auto tile = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted)));
  return {lowering.text, counts, attributes.local_experts, rows,
          std::min(std::clamp(tile, kLeastTile, kMostTile), rows)};
}

// Replaces the state by visit(expert, first row, end of its rows, state) for each count.
using Visit = std::function<State(const Tensor& expert, const Tensor& begin, const Tensor& end,
                                  const State& state)>;
State EachGroup(const Groups& groups, const State& start, const Visit& visit) {
  Function& text = groups.text;
  const Tensor zero = text.Constant(Element::kI32, {}, 0);
  State all = {zero, zero, groups.counts};
  all.insert(all.end(), start.begin(), start.end());
  const auto own = [](const State& state) { return State(state.begin() + 3, state.end()); };
  const auto count = static_cast<double>(groups.counts.shape[0]);
  return own(text.While(
      all, [&](const State& state) { return text.Compare("LT", state[0], count); },
      [&](const State& state) {
        const Tensor experts =
            text.Constant(Element::kI32, {}, static_cast<double>(groups.experts));
        const Tensor end =
            text.Add(state[1], text.Reshape(text.SliceAt(state[2], state[0], 1), {}));
        const State next =
            visit(text.Binary("remainder", state[0], experts), state[1], end, own(state));
        State result = {text.Add(state[0], 1), end, state[2]};
        result.insert(result.end(), next.begin(), next.end());
        return result;
      }));
}

// Replaces the state by visit(first row of the tile, i1[tile]: rows of the range, state) for each
// tile of rows [begin, end). A tile that would end beyond the last row begins earlier.
using VisitTile = std::function<State(const Tensor& first, const Tensor& kept, const State& state)>;
State EachTile(const Groups& groups, const Tensor& begin, const Tensor& end, const State& start,
               const VisitTile& visit) {
  Function& text = groups.text;
  State all = {begin, end};
  all.insert(all.end(), start.begin(), start.end());
  const auto own = [](const State& state) { return State(state.begin() + 2, state.end()); };
  return own(text.While(
      all, [&](const State& state) { return text.Compare("LT", state[0], state[1]); },
      [&](const State& state) {
        const Tensor last =
            text.Constant(Element::kI32, {}, static_cast<double>(groups.rows - groups.tile));
        const Tensor first = text.Binary("minimum", state[0], last);
        const Tensor rows = text.Add(text.Iota(Element::kI32, {groups.tile}, 0),
                                     text.Broadcast(first, {groups.tile}, {}));
        const Tensor kept = text.Binary("and", text.Compare("GE", rows, state[0]),
                                        text.Compare("LT", rows, state[1]));
        const State next = visit(first, kept, own(state));
        State result = {text.Add(state[0], static_cast<double>(groups.tile)), state[1]};
        result.insert(result.end(), next.begin(), next.end());
        return result;
      }));
}

// y = the rows of x times their expert's N rows of w, of which dim `dim` is summed over.
Status MultiplyRows(const Lowering& lowering, int dim) {
  const Groups groups = GroupsOf(lowering);
  Function& text = lowering.text;
  const DotDims dims{.contracted = {{1, dim}}};
  if (groups.experts == 1) {
    lowering.Out(0, text.Dot(lowering.In(0), lowering.In(1), dims));
    return OkStatus();
  }
  // For TPU7x, libtpu copies the weights of a loop into another layout. The copies of all layers
  // would exist at once if it did so before x exists.
  const State operands = text.Barrier({lowering.In(0), lowering.In(1)});
  const Tensor &x = operands[0], &w = operands[1];
  const int64_t height = w.shape[0] / groups.experts;
  const Tensor zeros = text.Constant(x.element, {groups.rows, lowering.Output(0).dims[1].local}, 0);
  const Visit visit = [&](const Tensor& expert, const Tensor& begin, const Tensor& end,
                          const State& state) -> State {
    const Tensor at = text.Multiply(expert, static_cast<double>(height));
    const State tiles = EachTile(
        groups, begin, end, {state[0], text.SliceAt(state[1], at, height), state[2]},
        [&](const Tensor& first, const Tensor& kept, const State& of) -> State {
          const Tensor before = text.SliceAt(of[2], first, groups.tile);
          const Tensor product = text.Convert(
              text.Dot(text.SliceAt(of[0], first, groups.tile), of[1], dims), before.element);
          const Tensor rows = text.Select(text.Broadcast(kept, before.shape, {0}), product, before);
          return {of[0], of[1], text.UpdateAt(of[2], rows, first)};
        });
    return {state[0], state[1], tiles[2]};
  };
  lowering.Out(0, EachGroup(groups, {x, w, zeros}, visit)[2]);
  return OkStatus();
}

}  // namespace

Status GroupedMatmul(const Lowering& lowering) { return MultiplyRows(lowering, 1); }

Status GroupedMatmulGradInput(const Lowering& lowering) { return MultiplyRows(lowering, 0); }

Status GroupedMatmulGradWeight(const Lowering& lowering) {
  const Groups groups = GroupsOf(lowering);
  Function& text = lowering.text;
  const Tensor dy = lowering.In(0), x = lowering.In(1);
  // Zeros in both operands: a row that is not counted may hold no number.
  const auto product = [&](const Tensor& a, const Tensor& b, const Tensor& kept) {
    return text.Dot(Masked(text, a, kept), Masked(text, b, kept), {.contracted = {{0, 0}}});
  };
  if (groups.experts == 1) {
    lowering.Accumulate(0, product(dy, x, Counted(text, groups.counts, groups.rows)));
    return OkStatus();
  }
  const int64_t height = dy.shape[1];
  const Visit visit = [&](const Tensor& expert, const Tensor& begin, const Tensor& end,
                          const State& state) -> State {
    const Tensor at = text.Multiply(expert, static_cast<double>(height));
    const State tiles =
        EachTile(groups, begin, end, {state[0], state[1], text.SliceAt(state[2], at, height)},
                 [&](const Tensor& first, const Tensor& kept, const State& of) -> State {
                   const Tensor part = product(text.SliceAt(of[0], first, groups.tile),
                                               text.SliceAt(of[1], first, groups.tile), kept);
                   return {of[0], of[1], text.Add(of[2], part)};
                 });
    return {state[0], state[1], text.UpdateAt(state[2], tiles[2], at)};
  };
  lowering.Out(0, EachGroup(groups, {dy, x, lowering.Accumulated(0)}, visit)[2]);
  return OkStatus();
}

}  // namespace troupe::kernels::xla
