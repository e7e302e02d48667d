// The draws are those of kernels/numerics/dropout_draw.h: Philox4x32-10 in 32-bit integers.
#include <array>
#include <vector>

#include "kernels/numerics/dropout_draw.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kChannels = 64;  // channels of a block of 16 counters of 4 words
constexpr int kRounds = 10;

struct Product {
  Tensor high, low;  // u32
};

Product MultiplyWide(Function& text, const Tensor& x, uint32_t factor) {
  const Tensor wide = text.Multiply(text.Convert(x, Element::kU64), text.Constant64(factor));
  const Tensor high = text.Binary("shift_right_logical", wide, text.Constant64(32));
  return {text.Convert(high, Element::kU32), text.Convert(wide, Element::kU32)};
}

// Philox4x32 of base/random.h on a tensor of counters {c0, c1, c2, c3}.
std::array<Tensor, 4> Philox(Function& text, uint64_t key, std::array<Tensor, 4> c) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  const auto mix = [&](const Tensor& high, const Tensor& word, uint32_t of_key) {
    return text.Binary("xor", text.Binary("xor", high, word),
                       text.Constant(Element::kU32, {}, of_key));
  };
  for (int round = 0; round < kRounds; ++round) {
    const Product first = MultiplyWide(text, c[0], 0xD2511F53);
    const Product second = MultiplyWide(text, c[2], 0xCD9E8D57);
    c = {mix(second.high, c[1], key0), second.low, mix(first.high, c[3], key1), first.low};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

// The draws u32[R,H] of rows with these steps, slots and positions, each u32[R].
Tensor Draws(Function& text, uint64_t key, const Tensor& step, const Tensor& slot,
             const Tensor& position, int64_t hidden) {
  const int64_t rows = step.shape[0], blocks = (hidden + kChannels - 1) / kChannels;
  const Shape shape = {rows, blocks * 16};
  const auto each = [&](const Tensor& row) { return text.Broadcast(row, shape, {0}); };
  const auto words = Philox(
      text, key, {text.Iota(Element::kU32, shape, 1), each(position), each(slot), each(step)});
  std::vector<Tensor> parts;
  for (const Tensor& word : words) parts.push_back(text.Reshape(word, {rows, blocks, 1, 16}));
  const Tensor all = text.Reshape(text.Concatenate(parts, 2), {rows, blocks * kChannels});
  return text.Slice(all, 1, 0, hidden);
}

}  // namespace

Status Dropout(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::DropoutAttributes>();
  const Tensor x = lowering.Float(0);
  const int64_t rows = x.shape[0], hidden = x.shape[1];
  std::vector<double> samples, positions;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = attributes.own.At(r);
    const int64_t sample = row / attributes.held.rows;
    samples.push_back(static_cast<double>(sample));
    positions.push_back(static_cast<double>(attributes.held.Position(row % attributes.held.rows)));
  }
  const Tensor of_rows =
      text.Convert(text.Gather(lowering.In(1), text.Vector(Element::kI32, samples)), Element::kU32);
  const auto column = [&](int64_t c) {
    return text.Reshape(text.Slice(of_rows, 1, c, c + 1), {rows});
  };
  const Tensor step = column(0);
  const Tensor draws =
      Draws(text, attributes.key, step, column(1), text.Vector(Element::kU32, positions), hidden);
  const double threshold = DropoutThreshold(attributes.probability);
  const Tensor kept = text.Compare("GE", draws, threshold);
  const Tensor evaluates = text.Broadcast(text.Compare("EQ", step, 0), x.shape, {0});
  const Tensor scaled = text.Multiply(x, 1 / (1 - attributes.probability));
  const Tensor dropped = text.Select(kept, scaled, text.Constant(Element::kF32, {}, 0));
  lowering.Out(0, text.Select(evaluates, x, dropped));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
