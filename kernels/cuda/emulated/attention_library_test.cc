// Tests attention by a library next to our own kernels: which operations are requested from the
// library, and that forward and gradient of either implementation can be combined. The library of
// these tests computes on the host in float64, as work on a stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/emulated/launch.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using cuda::LibraryAttentionShape;
using cuda::Stream;
using cuda::emulator::EmulatedDevice;
using cuda::emulator::StreamOrder;

float Get(const void* memory, int64_t at, bool bfloat16) {
  return bfloat16 ? ToFloat(static_cast<const BFloat16*>(memory)[at])
                  : static_cast<const float*>(memory)[at];
}
void Set(void* memory, int64_t at, bool bfloat16, double number) {
  if (bfloat16) {
    static_cast<BFloat16*>(memory)[at] = ToBFloat16(static_cast<float>(number));
  } else {
    static_cast<float*>(memory)[at] = static_cast<float>(number);
  }
}

// One query head of a sample; its functions return offsets of the head's elements in row `token`.
struct HeadOfSample {
  const LibraryAttentionShape& shape;
  int64_t sample, head;

  int64_t Q(int64_t token) const {
    return (sample * shape.tokens + token) * shape.qkv_width() + head * shape.head_dim;
  }
  int64_t K(int64_t token) const {  // relative to the start of k; also for v
    return (sample * shape.tokens + token) * shape.qkv_width() +
           head / (shape.query_heads / shape.key_value_heads) * shape.head_dim;
  }
  int64_t O(int64_t token) const {
    return ((sample * shape.tokens + token) * shape.query_heads + head) * shape.head_dim;
  }
  int64_t Lse(int64_t token) const {
    return (sample * shape.tokens + token) * shape.query_heads + head;
  }
  int64_t LseByHeads(int64_t token) const {
    return (sample * shape.query_heads + head) * shape.tokens + token;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(shape.head_dim)); }
};

// Σ a[a_at + d] · b[b_at + d].
double Dot(const HeadOfSample& of, const void* a, int64_t a_at, const void* b, int64_t b_at) {
  double sum = 0;
  for (int64_t d = 0; d < of.shape.head_dim; ++d) {
    sum += double{Get(a, a_at + d, of.shape.bfloat16)} * Get(b, b_at + d, of.shape.bfloat16);
  }
  return sum;
}

void Forward(const HeadOfSample& of, const AttentionArgs& args) {
  const LibraryAttentionShape& shape = of.shape;
  for (int64_t token = 0; token < shape.tokens; ++token) {
    double sum = 0;
    std::vector<double> weights, output(static_cast<size_t>(shape.head_dim));
    for (int64_t key = 0; key <= token; ++key) {
      weights.push_back(std::exp(of.scale() * Dot(of, args.q, of.Q(token), args.k, of.K(key))));
      sum += weights.back();
      for (size_t d = 0; d < output.size(); ++d) {
        output[d] +=
            weights.back() * Get(args.v, of.K(key) + static_cast<int64_t>(d), shape.bfloat16);
      }
    }
    for (size_t d = 0; d < output.size(); ++d) {
      Set(args.o, of.O(token) + static_cast<int64_t>(d), shape.bfloat16, output[d] / sum);
    }
    args.lse[of.Lse(token)] = static_cast<float>(std::log(sum));
  }
}

// Adds to dk and dv of the head's keys, which the heads of a group share. `dk` and `dv` are float64
// in the layout of k and v.
void Gradient(const HeadOfSample& of, const AttentionGradArgs& args, double* dk, double* dv) {
  const LibraryAttentionShape& shape = of.shape;
  for (int64_t token = 0; token < shape.tokens; ++token) {
    std::vector<double> dq(static_cast<size_t>(shape.head_dim));
    const double delta = Dot(of, args.output_gradient, of.O(token), args.o, of.O(token));
    for (int64_t key = 0; key <= token; ++key) {
      const double score = of.scale() * Dot(of, args.q, of.Q(token), args.k, of.K(key));
      const double weight = std::exp(score - args.lse[of.LseByHeads(token)]);
      const double d_score =
          of.scale() * weight *
          (Dot(of, args.output_gradient, of.O(token), args.v, of.K(key)) - delta);
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        dq[static_cast<size_t>(d)] += d_score * Get(args.k, of.K(key) + d, shape.bfloat16);
        dk[of.K(key) + d] += d_score * Get(args.q, of.Q(token) + d, shape.bfloat16);
        dv[of.K(key) + d] += weight * Get(args.output_gradient, of.O(token) + d, shape.bfloat16);
      }
    }
    for (int64_t d = 0; d < shape.head_dim; ++d) {
      Set(args.dq, of.Q(token) + d, shape.bfloat16, dq[static_cast<size_t>(d)]);
    }
  }
}

template <typename Body>
void ForEachHead(const LibraryAttentionShape& shape, const Body& body) {
  for (int64_t sample = 0; sample < shape.samples; ++sample) {
    for (int64_t head = 0; head < shape.query_heads; ++head)
      body(HeadOfSample{shape, sample, head});
  }
}

void Compute(const LibraryAttentionShape& shape, const AttentionArgs& args) {
  ForEachHead(shape, [&](const HeadOfSample& of) { Forward(of, args); });
}

// REQUIRES: one sample.
void Compute(const LibraryAttentionShape& shape, const AttentionGradArgs& args) {
  const auto elements = static_cast<size_t>(shape.rows() * shape.qkv_width());
  std::vector<double> dk(elements), dv(elements);
  // Handles one key head at a time, like a library whose workspace allows no more.
  for (int64_t group = 0; group < shape.key_value_heads; ++group) {
    const AttentionGradArgs of_group = HeadsFrom(group, shape, args);
    std::ranges::fill(dk, 0.0);
    std::ranges::fill(dv, 0.0);
    for (int64_t head = 0; head < shape.query_heads / shape.key_value_heads; ++head) {
      Gradient(HeadOfSample{shape, 0, head}, of_group, dk.data(), dv.data());
    }
    for (int64_t row = 0; row < shape.rows(); ++row) {
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        const int64_t at = row * shape.qkv_width() + d;
        Set(of_group.dk, at, shape.bfloat16, dk[static_cast<size_t>(at)]);
        Set(of_group.dv, at, shape.bfloat16, dv[static_cast<size_t>(at)]);
      }
    }
  }
}

constexpr int64_t kWorkspaceBytes = 1000;

template <typename Args>
class HostAttention : public cuda::LibraryAttentionOf<Args> {
 public:
  HostAttention(EmulatedDevice& device, const LibraryAttentionShape& shape, int* runs)
      : device_(device), shape_(shape), runs_(*runs) {}
  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  std::string implementation() const override { return "host"; }
  Status Enqueue(const Args& args, void* workspace, Stream stream) override {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace) % 256, 0u);
    return device_.Enqueue(
        "attention of the library",
        [this, args, workspace] {
          ++runs_;
          std::memset(workspace, 0xFF, kWorkspaceBytes);  // NaN: no other work uses it
          // Handles one sample at a time, like a library whose workspace allows no more.
          LibraryAttentionShape one = shape_;
          one.samples = 1;
          for (int64_t sample = 0; sample < shape_.samples; ++sample)
            Compute(one, SamplesFrom(sample, shape_, args));
          return OkStatus();
        },
        stream);
  }

 private:
  EmulatedDevice& device_;
  const LibraryAttentionShape shape_;
  int& runs_;
};

class HostAttentionLibrary : public cuda::AttentionLibrary {
 public:
  HostAttentionLibrary(EmulatedDevice& device, bool forward, bool gradient)
      : device_(device), forward_(forward), gradient_(gradient) {}

  StatusOr<std::unique_ptr<cuda::LibraryAttention>> Prepare(
      const LibraryAttentionShape& shape) override {
    asked.push_back("forward " + ShapeText(shape));
    if (!forward_) return nullptr;
    return std::make_unique<HostAttention<AttentionArgs>>(device_, shape, &forward_runs);
  }
  StatusOr<std::unique_ptr<cuda::LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) override {
    asked.push_back("gradient " + ShapeText(shape));
    if (!gradient_) return nullptr;
    return std::make_unique<HostAttention<AttentionGradArgs>>(device_, shape, &gradient_runs);
  }

  std::vector<std::string> asked;
  int forward_runs = 0, gradient_runs = 0;

 private:
  EmulatedDevice& device_;
  const bool forward_, gradient_;
};

model::BuildOptions Options(model::DType compute) {
  model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), {}, 2, 9);
  options.compute_dtype = compute;
  return options;
}

TEST(LibraryAttention, GoesWithOurOwnKernelsEitherWay) {
  TestRandom random;
  const auto seed = static_cast<uint64_t>(random.Integer(1, 1 << 30));
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    const double tolerance = compute == model::DType::kFloat32 ? 2e-5 : 0.06;
    ReferenceBackend reference;
    ProgramRun expected(reference, Options(compute), seed);
    const Microbatch microbatch = expected.MakeMicrobatch(seed);
    const std::vector<double> loss = expected.Train(microbatch, true);
    for (const int choice : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} {}", model::Name(compute), choice));
      const bool forward = choice % 2 != 0, gradient = choice / 2 != 0;
      EmulatedDevice device(choice == 3 ? StreamOrder::kComputeLast : StreamOrder::kComputeFirst);
      HostAttentionLibrary library(device, forward, gradient);
      CudaBackend backend(device, {.attention = &library}, nullptr);
      ProgramRun run(backend, Options(compute), seed);
      EXPECT_LE(RelativeError(run.Train(microbatch, true), loss), tolerance / 10);
      for (const model::ParameterEntry& entry : run.program().parameters) {
        EXPECT_LE(RelativeError(run.Read(entry.gradient), expected.Read(entry.gradient)), tolerance)
            << run.program().value(entry.value).name;
      }
      EXPECT_EQ(library.forward_runs, forward ? 2 : 0);
      EXPECT_EQ(library.gradient_runs, gradient ? 2 : 0);
      EXPECT_TRUE(backend.fallbacks().empty());  // using our own kernels is a choice
      EXPECT_THAT(backend.implementations(),
                  testing::UnorderedElementsAre(
                      forward ? "attention: host" : "attention: own kernels",
                      gradient ? "attention_grad: host" : "attention_grad: own kernels"));
      const std::string shape =
          fmt::format("{} samples=2 tokens=9 queries=4 keys=2 width=4",
                      compute == model::DType::kFloat32 ? "float32" : "bfloat16");
      EXPECT_THAT(library.asked,
                  testing::UnorderedElementsAre("forward " + shape, "gradient " + shape));
    }
  }
}

TEST(LibraryAttention, ThatIsAbsentMakesEachAttentionOfWholeSamplesInBfloat16AFallback) {
  const std::string absence = "libcudnn.so.9 is not found";
  const auto fallbacks_of = [&](const model::BuildOptions& options, const std::string& why) {
    EmulatedDevice device;
    CudaBackend backend(device, {.attention_absence = why}, nullptr);
    const ProgramRun run(backend, options, 3);
    return backend.fallbacks();
  };
  const auto own = [&](const char* operation) {
    return testing::AllOf(testing::StartsWith(operation),
                          testing::EndsWith(": own kernel: " + absence));
  };
  const model::BuildOptions bfloat16 = Options(model::DType::kBFloat16);
  EXPECT_THAT(fallbacks_of(bfloat16, absence),
              testing::UnorderedElementsAre(own("attention "), own("attention "),
                                            own("attention_grad "), own("attention_grad ")));
  EXPECT_THAT(fallbacks_of(bfloat16, ""), testing::IsEmpty());  // no library is expected
  // cuDNN would compute neither float32 nor documents.
  EXPECT_THAT(fallbacks_of(Options(model::DType::kFloat32), absence), testing::IsEmpty());
  model::BuildOptions documents = bfloat16;
  documents.document_mask = true;
  EXPECT_THAT(fallbacks_of(documents, absence), testing::IsEmpty());
}

TEST(LibraryAttention, IsNotAskedForDocuments) {
  EmulatedDevice device;
  HostAttentionLibrary library(device, true, true);
  CudaBackend backend(device, {.attention = &library}, nullptr);
  model::BuildOptions options = Options(model::DType::kFloat32);
  options.document_mask = true;
  ProgramRun run(backend, options, 3);
  run.Train(run.MakeMicrobatch(1), true);
  EXPECT_THAT(library.asked, testing::IsEmpty());
}

TEST(LibraryAttention, FindsLseByHeads) {
  TestRandom random;
  for (const auto& [samples, tokens, heads] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 130, 5}, {2, 256, 4}}) {
    std::vector<float> lse, by_heads(static_cast<size_t>(samples * tokens * heads), NAN),
        expected = by_heads;
    for (const double number : random.Normals(samples * tokens * heads))
      lse.push_back(static_cast<float>(number));
    const LibraryAttentionShape shape = {true, samples, tokens, heads, heads, 8};
    ForEachHead(shape, [&](const HeadOfSample& of) {
      for (int64_t token = 0; token < tokens; ++token) {
        expected[static_cast<size_t>(of.LseByHeads(token))] =
            lse[static_cast<size_t>(of.Lse(token))];
      }
    });
    cuda::emulator::Launch(cuda::LseByHeads(
        {.samples = samples, .tokens = tokens, .query_heads = heads}, lse.data(), by_heads.data()));
    EXPECT_EQ(by_heads, expected);
  }
}

}  // namespace
}  // namespace troupe::kernels
