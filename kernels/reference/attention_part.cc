// Attention to the keys of one rank of the context axis, merged with the result for the previous
// ranks' keys.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dot.h"
#include "kernels/reference/operation.h"
#include "model/program/context_rows.h"

namespace troupe::kernels::reference {
namespace {

using model::Axis;
using model::ContextRows;

struct Part {
  const model::PartAttributes& attributes;
  ContextRows queries, keys;  // rows held of each sample
  int64_t samples = 0;
  const double* documents;  // for whole samples, or null

  Part(const Operation& operation, int q, int documents_index)
      : attributes(operation.attributes<model::PartAttributes>()) {
    const int ranks = operation.program.mesh.degrees[Axis::kContext];
    const int rank = operation.program.mesh.coordinates[Axis::kContext];
    const int64_t tokens = attributes.attention.tokens;
    queries = ContextRows::Of(tokens, ranks, rank);
    keys = ContextRows::Of(tokens, ranks, ((rank - attributes.shift) % ranks + ranks) % ranks);
    samples = operation.Extent(q, 0) / queries.rows;
    documents = attributes.attention.mask.kind == model::Mask::Kind::kDocument
                    ? operation.inputs[documents_index]
                    : nullptr;
  }

  int64_t query_heads() const { return attributes.attention.query_heads; }
  int64_t head_dim() const { return attributes.attention.head_dim; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim())); }

  // Calls body(query row, head, key row, offset of key, offset of value) for every query and key it
  // attends to; the keys of a query and head are consecutive.
  template <typename Begin, typename Body, typename End>
  void Each(const Begin& begin, const Body& body, const End& end) const {
    const auto& a = attributes.attention;
    const int64_t group = a.query_heads / a.key_value_heads;
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (int64_t q = 0; q < queries.rows; ++q) {
        const int64_t position = queries.Position(q);
        const int64_t first =
            documents == nullptr
                ? 0
                : keys.CountBefore(static_cast<int64_t>(documents[sample * a.tokens + position]));
        const int64_t last = keys.CountBefore(position + 1);
        for (int64_t head = 0; head < a.query_heads; ++head) {
          const int64_t row = sample * queries.rows + q;
          begin(row, head);
          for (int64_t k = first; k < last; ++k) {
            const int64_t key_row = sample * keys.rows + k;
            const int64_t key = (key_row * 2 * a.key_value_heads + head / group) * a.head_dim;
            body(row, head, key, key + a.key_value_heads * a.head_dim);
          }
          end(row, head);
        }
      }
    }
  }
};

}  // namespace

// One pass over the keys: a new largest score rescales the accumulated output.
Status AttentionPart(const Operation& operation) {
  const Part part(operation, 0, 2);
  const int64_t head_dim = part.head_dim();
  const double *q = operation.inputs[0], *kv = operation.inputs[1];
  const size_t count = operation.inputs.size();
  const bool merges = part.attributes.shift > 0;
  double largest = 0, total = 0;
  std::vector<double> sum(head_dim);
  part.Each(
      [&](int64_t row, int64_t head) {
        const int64_t at = row * part.query_heads() + head;
        largest = merges ? operation.inputs[count - 1][at] : -INFINITY;
        total = merges ? 1 : 0;
        for (int64_t d = 0; d < head_dim; ++d) {
          sum[d] = merges ? operation.inputs[count - 2][at * head_dim + d] : 0;
        }
      },
      [&](int64_t row, int64_t head, int64_t key, int64_t value) {
        const double score = part.scale() * Dot(q + (row * part.query_heads() + head) * head_dim,
                                                kv + key, head_dim);
        const double rises = std::max(largest, score);
        const double rescale = std::exp(largest - rises), weight = std::exp(score - rises);
        total = total * rescale + weight;
        for (int64_t d = 0; d < head_dim; ++d) sum[d] = sum[d] * rescale + weight * kv[value + d];
        largest = rises;
      },
      [&](int64_t row, int64_t head) {
        const int64_t at = row * part.query_heads() + head;
        operation.outputs[1][at] = largest + std::log(total);
        for (int64_t d = 0; d < head_dim; ++d) {
          operation.outputs[0][at * head_dim + d] = sum[d] / total;
        }
      });
  return OkStatus();
}

// Like AttentionGrad: the probabilities are those of the whole softmax.
Status AttentionPartGrad(const Operation& operation) {
  const Part part(operation, 1, 5);
  const int64_t head_dim = part.head_dim();
  const double *q = operation.inputs[1], *kv = operation.inputs[2];
  double *dq = operation.outputs[0], *dkv = operation.outputs[1];
  std::fill_n(dq, operation.Output(0).elements(), 0.0);
  std::fill_n(dkv, operation.Output(1).elements(), 0.0);
  double delta = 0;
  part.Each(
      [&](int64_t row, int64_t head) {
        const int64_t at = (row * part.query_heads() + head) * head_dim;
        delta = Dot(operation.inputs[0] + at, operation.inputs[3] + at, head_dim);
      },
      [&](int64_t row, int64_t head, int64_t key, int64_t value) {
        const int64_t index = row * part.query_heads() + head, at = index * head_dim;
        const double* output_gradient = operation.inputs[0] + at;
        const double probability =
            std::exp(part.scale() * Dot(q + at, kv + key, head_dim) - operation.inputs[4][index]);
        const double ds =
            probability * (Dot(output_gradient, kv + value, head_dim) - delta) * part.scale();
        for (int64_t d = 0; d < head_dim; ++d) {
          dq[at + d] += ds * kv[key + d];
          dkv[key + d] += ds * q[at + d];
          dkv[value + d] += probability * output_gradient[d];
        }
      },
      [](int64_t, int64_t) {});
  return OkStatus();
}

}  // namespace troupe::kernels::reference
