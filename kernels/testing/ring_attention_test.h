// Compares ring attention, computed part by part as on each rank of a context axis, with attention
// over whole samples. Shared by the tests of each backend.
#ifndef TROUPE_KERNELS_TESTING_RING_ATTENTION_TEST_H_
#define TROUPE_KERNELS_TESTING_RING_ATTENTION_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/testing.h"
#include "model/program/context_rows.h"

namespace troupe::kernels {

struct RingShape {
  int64_t samples, tokens, query_heads, key_value_heads, head_dim;
  int ranks;
};

// A whole problem and its computation by parts.
class Ring {
 public:
  using DType = model::DType;
  using OpKind = model::OpKind;
  using Axis = model::Axis;
  using Numbers = std::vector<double>;

  Ring(const RingShape& shape, bool documents, DType compute, TestRandom& random)
      : shape_(shape),
        compute_(compute),
        whole_{shape.query_heads, shape.key_value_heads, shape.head_dim, shape.tokens, {}},
        rows_(shape.samples * shape.tokens),
        q_width_(shape.query_heads * shape.head_dim),
        kv_width_(2 * shape.key_value_heads * shape.head_dim) {
    qkv_ = {compute, {rows_, q_width_ + kv_width_}, random.Normals(rows_ * (q_width_ + kv_width_))};
    d_output_ = random.Normals(rows_ * q_width_);
    if (documents) {
      whole_.mask.kind = model::Mask::Kind::kDocument;
      documents_ = {{DType::kInt32, {rows_}, random.Documents(shape.samples, shape.tokens)}};
    }
  }

  struct Result {
    Numbers output, lse, dq, dkv;
    Numbers Gradients() const {
      Numbers both = dq;
      both.insert(both.end(), dkv.begin(), dkv.end());
      return both;
    }
  };

  // Attention over whole samples, by the reference.
  Result Whole() {
    ReferenceBackend backend;
    std::vector<TestValue> inputs = {qkv_};
    inputs.insert(inputs.end(), documents_.begin(), documents_.end());
    const TestResult forward = RunOp(
        backend, {OpKind::kAttention,
                  whole_,
                  inputs,
                  {Of(compute_, rows_, q_width_), Of(DType::kFloat32, rows_, shape_.query_heads)}});
    inputs = {{compute_, {rows_, q_width_}, d_output_},
              qkv_,
              {compute_, {rows_, q_width_}, forward.outputs[0]},
              {DType::kFloat32, {rows_, shape_.query_heads}, forward.outputs[1]}};
    inputs.insert(inputs.end(), documents_.begin(), documents_.end());
    const TestResult backward = RunOp(
        backend,
        {OpKind::kAttentionGrad, whole_, inputs, {Of(compute_, rows_, q_width_ + kv_width_)}});
    const TestResult split =
        RunOp(backend, {OpKind::kSplitHeads,
                        {},
                        {{compute_, {rows_, q_width_ + kv_width_}, backward.outputs[0]}},
                        {Of(compute_, rows_, q_width_), Of(compute_, rows_, kv_width_)}});
    return {forward.outputs[0], forward.outputs[1], split.outputs[0], split.outputs[1]};
  }

  // The same by `backend`: each rank's rows part by part. The gradients of keys and values are
  // summed over the ranks that attended to them.
  Result Parts(Backend& backend) {
    const TestResult split =
        RunOp(backend, {OpKind::kSplitHeads,
                        {},
                        {qkv_},
                        {Of(compute_, rows_, q_width_), Of(compute_, rows_, kv_width_)}});
    Result result = {Numbers(rows_ * q_width_), Numbers(rows_ * shape_.query_heads),
                     Numbers(rows_ * q_width_), Numbers(rows_ * kv_width_)};
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const int64_t rows = rows_ / shape_.ranks;
      const TestValue q = {compute_, {rows, q_width_}, Pick(split.outputs[0], q_width_, rank)};
      const auto kv = [&](int shift) {
        const int from = (rank - shift + shape_.ranks) % shape_.ranks;
        return TestValue{compute_, {rows, kv_width_}, Pick(split.outputs[1], kv_width_, from)};
      };
      const auto op = [&](OpKind kind, int shift, std::vector<TestValue> inputs) {
        TestOp part = {kind,
                       model::PartAttributes{whole_, shift, shift + 1 == shape_.ranks},
                       std::move(inputs),
                       {}};
        part.mesh.degrees[Axis::kContext] = shape_.ranks;
        part.mesh.coordinates[Axis::kContext] = rank;
        return part;
      };
      TestResult merged;
      for (int shift = 0; shift < shape_.ranks; ++shift) {
        std::vector<TestValue> inputs = {q, kv(shift)};
        inputs.insert(inputs.end(), documents_.begin(), documents_.end());
        if (shift > 0) {
          inputs.push_back({DType::kFloat32, {rows, q_width_}, merged.outputs[0]});
          inputs.push_back({DType::kFloat32, {rows, shape_.query_heads}, merged.outputs[1]});
        }
        TestOp part = op(OpKind::kAttentionPart, shift, std::move(inputs));
        const bool last = shift + 1 == shape_.ranks;
        part.outputs = {Of(last ? compute_ : DType::kFloat32, rows, q_width_),
                        Of(DType::kFloat32, rows, shape_.query_heads)};
        merged = RunOp(backend, part);
      }
      Place(merged.outputs[0], q_width_, rank, result.output);
      Place(merged.outputs[1], shape_.query_heads, rank, result.lse);
      for (int shift = 0; shift < shape_.ranks; ++shift) {
        std::vector<TestValue> inputs = {
            {compute_, {rows, q_width_}, Pick(d_output_, q_width_, rank)},
            q,
            kv(shift),
            {compute_, {rows, q_width_}, merged.outputs[0]},
            {DType::kFloat32, {rows, shape_.query_heads}, merged.outputs[1]}};
        inputs.insert(inputs.end(), documents_.begin(), documents_.end());
        TestOp part = op(OpKind::kAttentionPartGrad, shift, std::move(inputs));
        part.outputs = {Of(compute_, rows, q_width_), Of(compute_, rows, kv_width_)};
        const TestResult gradient = RunOp(backend, part);
        Place(gradient.outputs[0], q_width_, rank, result.dq);
        Place(gradient.outputs[1], kv_width_, (rank - shift + shape_.ranks) % shape_.ranks,
              result.dkv);
      }
    }
    return result;
  }

 private:
  static TestValue Of(DType dtype, int64_t rows, int64_t columns) {
    return {dtype, {rows, columns}, {}};
  }

  // Calls `body` with the local and the global index of each row of `rank`.
  template <typename Body>
  void EachRow(int rank, const Body& body) const {
    const auto held = model::ContextRows::Of(shape_.tokens, shape_.ranks, rank);
    for (int64_t sample = 0; sample < shape_.samples; ++sample) {
      for (int64_t row = 0; row < held.rows; ++row) {
        body(sample * held.rows + row, sample * shape_.tokens + held.Position(row));
      }
    }
  }
  Numbers Pick(const Numbers& whole, int64_t columns, int rank) const {
    Numbers part(rows_ / shape_.ranks * columns);
    EachRow(rank, [&](int64_t here, int64_t there) {
      std::copy_n(&whole[there * columns], columns, &part[here * columns]);
    });
    return part;
  }
  // Adds the rows of `rank` to `whole`.
  void Place(const Numbers& part, int64_t columns, int rank, Numbers& whole) const {
    EachRow(rank, [&](int64_t here, int64_t there) {
      for (int64_t c = 0; c < columns; ++c) whole[there * columns + c] += part[here * columns + c];
    });
  }

  const RingShape shape_;
  const DType compute_;
  model::AttentionAttributes whole_;
  const int64_t rows_, q_width_, kv_width_;
  TestValue qkv_;
  Numbers d_output_;
  std::vector<TestValue> documents_;  // one element, or none
};

// The first shape is tiny. The last has blocks of queries that attend to none of the keys of a
// part, and keys that no query attends to.
inline const std::vector<RingShape> kRingShapes = {{1, 4, 1, 1, 1, 2},
                                                   {2, 12, 4, 2, 6, 3},
                                                   {1, 264, 3, 3, 33, 2},
                                                   {2, 320, 2, 1, 16, 4},
                                                   {1, 528, 1, 1, 8, 2}};

// Expects that `backend`, part by part, gives the results of the reference on whole samples, for
// each shape with and without documents.
inline void ExpectPartsAreTheWhole(Backend& backend, model::DType compute, double tolerance,
                                   const std::vector<RingShape>& shapes) {
  TestRandom random;
  for (const RingShape& shape : shapes) {
    for (const bool documents : {false, true}) {
      Ring ring(shape, documents, compute, random);
      const Ring::Result whole = ring.Whole(), parts = ring.Parts(backend);
      const auto text = testing::Message() << shape.tokens << " tokens over " << shape.ranks
                                           << " ranks" << (documents ? ", documents" : "");
      EXPECT_LE(RelativeError(parts.output, whole.output), tolerance) << text;
      EXPECT_LE(RelativeError(parts.lse, whole.lse), tolerance) << text;
      // Compares all gradients together: if every document has one row, the gradients of queries
      // and keys are only rounding errors.
      EXPECT_LE(RelativeError(parts.Gradients(), whole.Gradients()), tolerance) << text;
    }
  }
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_TESTING_RING_ATTENTION_TEST_H_
