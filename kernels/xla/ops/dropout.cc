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

// The sample of each row, i32[R], and its position there, u32[R].
struct Places {
  Tensor samples, positions;
};

// TensorRows::At, then ContextRows::Position.
Places PlacesOf(const Lowering& lowering, int64_t rows) {
  Function& text = lowering.text;
  const auto number = [&](int64_t of) {
    return text.Constant(Element::kI32, {}, static_cast<double>(of));
  };
  const auto own = [&](auto of) {
    return lowering.Number(Element::kI32, [of](const Lowering& rank) {
      return static_cast<double>(of(rank.attributes<model::DropoutAttributes>()));
    });
  };
  const model::TensorRows& own_rows = lowering.attributes<model::DropoutAttributes>().own;
  const model::ContextRows& held = lowering.attributes<model::DropoutAttributes>().held;
  Tensor row = text.Iota(Element::kI32, {rows}, 0);
  if (own_rows.block > 0) {
    const Tensor block = number(own_rows.block);
    row = text.Add(text.Multiply(text.Divide(row, block), static_cast<double>(own_rows.stride)),
                   text.Binary("remainder", row, block));
  }
  row = text.Add(row, own([](const model::DropoutAttributes& a) { return a.own.first; }));
  const Tensor of_sample = text.Binary("remainder", row, number(held.rows));
  const Tensor head = own([](const model::DropoutAttributes& a) { return a.held.head; });
  const Tensor tail =
      own([](const model::DropoutAttributes& a) { return a.held.tail - a.held.chunk; });
  const Tensor position =
      text.Select(text.Compare("LT", of_sample, static_cast<double>(held.chunk)),
                  text.Add(of_sample, head), text.Add(of_sample, tail));
  return {text.Divide(row, number(held.rows)), text.Convert(position, Element::kU32)};
}

}  // namespace

Status Dropout(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::DropoutAttributes>();
  const Tensor x = lowering.Float(0);
  const int64_t rows = x.shape[0], hidden = x.shape[1];
  const Places places = PlacesOf(lowering, rows);
  const Tensor of_rows = text.Convert(text.Gather(lowering.In(1), places.samples), Element::kU32);
  const auto column = [&](int64_t c) {
    return text.Reshape(text.Slice(of_rows, 1, c, c + 1), {rows});
  };
  const Tensor step = column(0);
  const Tensor draws = Draws(text, attributes.key, step, column(1), places.positions, hidden);
  const double threshold = DropoutThreshold(attributes.probability);
  const Tensor kept = text.Compare("GE", draws, threshold);
  const Tensor evaluates = text.Broadcast(text.Compare("EQ", step, 0), x.shape, {0});
  const Tensor scaled = text.Multiply(x, 1 / (1 - attributes.probability));
  const Tensor dropped = text.Select(kept, scaled, text.Constant(Element::kF32, {}, 0));
  lowering.Out(0, text.Select(evaluates, x, dropped));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
