// Causal grouped-query attention over samples of T rows, or over their documents: o = softmax(q kᵀ
// / sqrt(D)) v, one query row at a time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dot.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {
namespace {

struct Layout {
  int64_t query_heads, key_value_heads, head_dim, tokens, rows;
  int64_t stride() const { return (query_heads + 2 * key_value_heads) * head_dim; }
  int64_t group() const { return query_heads / key_value_heads; }
  // Offsets of head vectors in a row of qkv.
  int64_t QueryAt(int64_t row, int64_t head) const { return row * stride() + head * head_dim; }
  int64_t KeyAt(int64_t row, int64_t head) const {
    return row * stride() + (query_heads + head / group()) * head_dim;
  }
  int64_t ValueAt(int64_t row, int64_t head) const {
    return row * stride() + (query_heads + key_value_heads + head / group()) * head_dim;
  }
  int64_t OutputAt(int64_t row, int64_t head) const {
    return (row * query_heads + head) * head_dim;
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }
};

Layout LayoutOf(const Operation& operation, int qkv) {
  const auto& attributes = operation.attributes<model::AttentionAttributes>();
  return {attributes.query_heads, attributes.key_value_heads, attributes.head_dim,
          attributes.tokens, operation.Extent(qkv, 0)};
}

// The first row that `row` attends to. `documents` is the index of the documents input, which may
// be absent.
int64_t FirstVisible(const Operation& operation, const Layout& layout, int64_t row,
                     size_t documents) {
  const int64_t sample = row / layout.tokens * layout.tokens;
  if (operation.inputs.size() <= documents) return sample;
  return sample + static_cast<int64_t>(operation.inputs[documents][row]);
}

}  // namespace

Status Attention(const Operation& operation) {
  const Layout layout = LayoutOf(operation, 0);
  const double* qkv = operation.inputs[0];
  std::vector<double> scores(layout.tokens);
  for (int64_t row = 0; row < layout.rows; ++row) {
    const int64_t first = FirstVisible(operation, layout, row, 1);
    for (int64_t head = 0; head < layout.query_heads; ++head) {
      double largest = -INFINITY;
      for (int64_t key = first; key <= row; ++key) {
        scores[key - first] = layout.scale() * Dot(qkv + layout.QueryAt(row, head),
                                                   qkv + layout.KeyAt(key, head), layout.head_dim);
        largest = std::max(largest, scores[key - first]);
      }
      double total = 0;
      for (int64_t key = first; key <= row; ++key) total += std::exp(scores[key - first] - largest);
      const double lse = largest + std::log(total);
      operation.outputs[1][row * layout.query_heads + head] = lse;
      double* o = operation.outputs[0] + layout.OutputAt(row, head);
      std::fill_n(o, layout.head_dim, 0.0);
      for (int64_t key = first; key <= row; ++key) {
        const double probability = std::exp(scores[key - first] - lse);
        const double* v = qkv + layout.ValueAt(key, head);
        for (int64_t d = 0; d < layout.head_dim; ++d) o[d] += probability * v[d];
      }
    }
  }
  return OkStatus();
}

// With probabilities p and delta = do · o: dv += p do, ds = p (do · v - delta), dq += ds k, dk +=
// ds q.
Status AttentionGrad(const Operation& operation) {
  const Layout layout = LayoutOf(operation, 1);
  const double* qkv = operation.inputs[1];
  double* dqkv = operation.outputs[0];
  std::fill_n(dqkv, layout.rows * layout.stride(), 0.0);
  for (int64_t row = 0; row < layout.rows; ++row) {
    const int64_t first = FirstVisible(operation, layout, row, 4);
    for (int64_t head = 0; head < layout.query_heads; ++head) {
      const double* output_gradient = operation.inputs[0] + layout.OutputAt(row, head);
      const double delta =
          Dot(output_gradient, operation.inputs[2] + layout.OutputAt(row, head), layout.head_dim);
      const double lse = operation.inputs[3][row * layout.query_heads + head];
      const double* q = qkv + layout.QueryAt(row, head);
      for (int64_t key = first; key <= row; ++key) {
        const double* k = qkv + layout.KeyAt(key, head);
        const double* v = qkv + layout.ValueAt(key, head);
        const double probability = std::exp(layout.scale() * Dot(q, k, layout.head_dim) - lse);
        const double ds =
            probability * (Dot(output_gradient, v, layout.head_dim) - delta) * layout.scale();
        for (int64_t d = 0; d < layout.head_dim; ++d) {
          dqkv[layout.QueryAt(row, head) + d] += ds * k[d];
          dqkv[layout.KeyAt(key, head) + d] += ds * q[d];
          dqkv[layout.ValueAt(key, head) + d] += probability * output_gradient[d];
        }
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
