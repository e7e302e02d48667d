#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "kernels/backend/arena_layout.h"
#include "kernels/cpu/parallel.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cpu {
namespace {

using dnnl::memory;

Status LibraryStatus(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return OkStatus();
  return Internal("oneDNN {} failed with status {}", what, static_cast<int>(status));
}

}  // namespace

// Calls sgemm, which is row-major like our matrices.
Status Float32Rows(const MatmulShape& shape, const void* a, const void* b, void* c,
                   bool accumulate) {
  const auto* x = static_cast<const float*>(a);
  const auto* y = static_cast<const float*>(b);
  auto* z = static_cast<float*>(c);
  const int64_t rows = shape.rows;
  const int64_t k = shape.k;
  const int64_t n = shape.n;
  const float beta = accumulate ? 1.0f : 0.0f;
  switch (shape.kind) {
    case MatmulKind::kForward:
      return LibraryStatus(dnnl_sgemm('N', 'T', rows, n, k, 1.0f, x, k, y, k, beta, z, n), "sgemm");
    case MatmulKind::kInputGradient:
      return LibraryStatus(dnnl_sgemm('N', 'N', rows, k, n, 1.0f, x, n, y, k, beta, z, k), "sgemm");
    case MatmulKind::kWeightGradient:
      return LibraryStatus(dnnl_sgemm('T', 'N', n, k, rows, 1.0f, x, n, y, k, beta, z, k), "sgemm");
  }
  return Internal("the matmul's kind is unknown");
}

namespace {

class Float32Matmul : public Matmul {
 public:
  explicit Float32Matmul(const MatmulShape& shape) : shape_(shape) {}

  int64_t scratch_bytes() const override { return 0; }
  std::string implementation() const override { return "sgemm"; }
  bool is_float32() const override { return true; }

  Status Run(const void* a, const void* b, void* c, bool accumulate, char*) override {
    return Float32Rows(shape_, a, b, c, accumulate);
  }

 private:
  const MatmulShape shape_;
};

// One primitive with handles for its arguments, so that executing it builds no C++ containers.
class BoundPrimitive {
 public:
  BoundPrimitive() = default;
  BoundPrimitive(dnnl::primitive primitive, const dnnl::engine& engine,
                 const std::vector<std::pair<int, memory::desc>>& arguments)
      : primitive_(std::move(primitive)) {
    for (const auto& [index, desc] : arguments) {
      memories_.push_back(memory(desc, engine, DNNL_MEMORY_NONE));
      arguments_.push_back({index, memories_.back().get()});
    }
  }
  Status Run(const dnnl::stream& stream, std::initializer_list<const void*> pointers) {
    size_t i = 0;
    for (const void* pointer : pointers) {
      TROUPE_RETURN_IF_ERROR(LibraryStatus(
          dnnl_memory_set_data_handle(arguments_[i++].memory, const_cast<void*>(pointer)),
          "memory handle"));
    }
    return LibraryStatus(
        dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()),
                               arguments_.data()),
        "primitive");
  }

 private:
  dnnl::primitive primitive_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

memory::desc Matrix(int64_t rows, int64_t columns, memory::data_type type,
                    memory::format_tag tag = memory::format_tag::ab) {
  return {{rows, columns}, type, tag};
}

// bfloat16 by inner_product; accumulating weight gradients use matmul with a sum.
class BFloat16Matmul : public Matmul {
 public:
  // Throws dnnl::error if oneDNN does not support the matmul.
  explicit BFloat16Matmul(const MatmulShape& shape)
      : shape_(shape), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto bf16 = memory::data_type::bf16;
    const memory::desc x = Matrix(shape.rows, shape.k, bf16);
    const memory::desc w = Matrix(shape.n, shape.k, bf16);
    const memory::desc y = Matrix(shape.rows, shape.n, bf16);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::inner_product_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, x, w, y}, attributes, engine_);
    switch (shape.kind) {
      case MatmulKind::kForward:
        implementation_ = forward.impl_info_str();
        main_ = BoundPrimitive(dnnl::inner_product_forward(forward), engine_,
                               {{DNNL_ARG_SRC, x},
                                {DNNL_ARG_WEIGHTS, w},
                                {DNNL_ARG_DST, y},
                                {DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc()}});
        scratch_bytes_ = ScratchOf(forward);
        break;
      case MatmulKind::kInputGradient: {
        const dnnl::inner_product_backward_data::primitive_desc backward({x, w, y}, attributes,
                                                                         engine_, forward);
        implementation_ = backward.impl_info_str();
        main_ = BoundPrimitive(dnnl::inner_product_backward_data(backward), engine_,
                               {{DNNL_ARG_DIFF_DST, y},
                                {DNNL_ARG_WEIGHTS, w},
                                {DNNL_ARG_DIFF_SRC, x},
                                {DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc()}});
        scratch_bytes_ = ScratchOf(backward);
        break;
      }
      case MatmulKind::kWeightGradient:
        PrepareWeightGradient(attributes, forward, x, y);
        break;
    }
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::string implementation() const override { return implementation_; }
  bool is_float32() const override { return false; }

  Status Run(const void* a, const void* b, void* c, bool accumulate, char* scratch) override {
    if (!accumulate) return main_.Run(stream_, {a, b, c, scratch});
    TROUPE_RETURN_IF_ERROR(pack_.Run(stream_, {b, scratch, scratch + packed_bytes_}));
    return accumulate_.Run(stream_, {a, scratch, c, scratch + packed_bytes_});
  }

 private:
  template <typename Descriptor>
  static int64_t ScratchOf(const Descriptor& descriptor) {
    return static_cast<int64_t>(descriptor.scratchpad_desc().get_size());
  }

  void PrepareWeightGradient(const dnnl::primitive_attr& attributes,
                             const dnnl::inner_product_forward::primitive_desc& forward,
                             const memory::desc& x, const memory::desc& y) {
    const memory::desc dw = Matrix(shape_.n, shape_.k, memory::data_type::f32);
    const dnnl::inner_product_backward_weights::primitive_desc backward({x, dw, y}, attributes,
                                                                        engine_, forward);
    main_ = BoundPrimitive(dnnl::inner_product_backward_weights(backward), engine_,
                           {{DNNL_ARG_DIFF_DST, y},
                            {DNNL_ARG_SRC, x},
                            {DNNL_ARG_DIFF_WEIGHTS, dw},
                            {DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc()}});
    implementation_ = backward.impl_info_str();

    // A new object rather than a copy of `attributes`: copies share what is set later.
    dnnl::primitive_attr summing;
    summing.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    summing.set_post_ops(sum);
    // dyᵀ is dy in column-major order.
    const memory::desc transposed =
        Matrix(shape_.n, shape_.rows, memory::data_type::bf16, memory::format_tag::ba);
    const memory::desc any =
        Matrix(shape_.rows, shape_.k, memory::data_type::bf16, memory::format_tag::any);
    const dnnl::matmul::primitive_desc matmul({transposed, any, dw}, summing, engine_);
    const memory::desc packed = matmul.weights_desc();
    const dnnl::reorder::primitive_desc pack(engine_, x, engine_, packed, attributes);
    pack_ = BoundPrimitive(
        dnnl::reorder(pack), engine_,
        {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, packed}, {DNNL_ARG_SCRATCHPAD, pack.scratchpad_desc()}});
    accumulate_ = BoundPrimitive(dnnl::matmul(matmul), engine_,
                                 {{DNNL_ARG_SRC, transposed},
                                  {DNNL_ARG_WEIGHTS, packed},
                                  {DNNL_ARG_DST, dw},
                                  {DNNL_ARG_SCRATCHPAD, matmul.scratchpad_desc()}});
    implementation_ += std::string(" ") + matmul.impl_info_str();
    packed_bytes_ = RoundUp(static_cast<int64_t>(packed.get_size()), 4096);
    scratch_bytes_ =
        std::max(ScratchOf(backward), packed_bytes_ + std::max(ScratchOf(pack), ScratchOf(matmul)));
  }

  const MatmulShape shape_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  BoundPrimitive main_, pack_, accumulate_;
  int64_t packed_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
  std::string implementation_;
};

// bfloat16 where oneDNN does not support it: operands are widened to float32, the weights in blocks
// of kBlock rows.
class WidenedMatmul : public Matmul {
 public:
  WidenedMatmul(const MatmulShape& shape, Level level, int threads)
      : shape_(shape), kernels_(KernelsOf(level)), threads_(threads) {}

  int64_t scratch_bytes() const override {
    return 4 *
           (shape_.rows * shape_.k + kBlock * (shape_.k + shape_.rows) + shape_.rows * shape_.n);
  }
  std::string implementation() const override { return "ref:widened"; }
  bool is_float32() const override { return true; }

  Status Run(const void* a, const void* b, void* c, bool accumulate, char* scratch) override {
    const int64_t rows = shape_.rows;
    const int64_t k = shape_.k;
    const int64_t n = shape_.n;
    auto* left = reinterpret_cast<float*>(scratch);  // x or dx, [R,K]
    float* wide = left + rows * k;                   // dy, [R,N]; unused by the forward matmul
    float* block = wide + rows * n;                  // rows of w, [block,K]
    float* output = block + kBlock * k;              // columns of y, [R,block]
    if (shape_.kind == MatmulKind::kWeightGradient) {
      Widen(a, wide, rows * n);
      Widen(b, left, rows * k);
      return LibraryStatus(dnnl_sgemm('T', 'N', n, k, rows, 1.0f, wide, n, left, k,
                                      accumulate ? 1.0f : 0.0f, static_cast<float*>(c), k),
                           "sgemm");
    }
    const bool forward = shape_.kind == MatmulKind::kForward;
    if (forward) {
      Widen(a, left, rows * k);
    } else {
      Widen(a, wide, rows * n);
    }
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t width = std::min(kBlock, n - first);
      Widen(static_cast<const BFloat16*>(b) + first * k, block, width * k);
      if (forward) {
        TROUPE_RETURN_IF_ERROR(LibraryStatus(
            dnnl_sgemm('N', 'T', rows, width, k, 1.0f, left, k, block, k, 0.0f, output, width),
            "sgemm"));
        Narrow({output, static_cast<BFloat16*>(c) + first, rows, width, n});
      } else {
        TROUPE_RETURN_IF_ERROR(
            LibraryStatus(dnnl_sgemm('N', 'N', rows, k, width, 1.0f, wide + first, n, block, k,
                                     first == 0 ? 0.0f : 1.0f, left, k),
                          "sgemm"));
      }
    }
    if (!forward) Narrow({left, c, rows, k, k});
    return OkStatus();
  }

 private:
  static constexpr int64_t kBlock = 1024;

  void Widen(const void* x, float* y, int64_t count) {
    const WidenArgs args{x, y, count};
    Parallel(threads_, [&](int part) { kernels_.widen(args, part, threads_); });
  }
  void Narrow(const NarrowArgs& args) {
    Parallel(threads_, [&](int part) { kernels_.narrow(args, part, threads_); });
  }

  const MatmulShape shape_;
  const KernelTable& kernels_;
  const int threads_;
};

}  // namespace

StatusOr<std::unique_ptr<Matmul>> PrepareMatmul(const MatmulShape& shape, Level level,
                                                int threads) {
  if (!shape.bfloat16) return std::make_unique<Float32Matmul>(shape);
  if (level < Level::kAvx512) return std::make_unique<WidenedMatmul>(shape, level, threads);
  try {
    return std::make_unique<BFloat16Matmul>(shape);
  } catch (const dnnl::error& error) {
    return Internal("oneDNN has no bfloat16 matmul of {} rows, {} in, {} out: {}", shape.rows,
                    shape.k, shape.n, error.message);
  }
}

Status LimitLibrary(Level level) {
  dnnl_cpu_isa_t isa = dnnl_cpu_isa_all;
  switch (level) {
    case Level::kPortable:
      isa = dnnl_cpu_isa_sse41;
      break;
    case Level::kAvx2:
      isa = dnnl_cpu_isa_avx2;
      break;
    case Level::kAvx512:
      isa = dnnl_cpu_isa_avx512_core;
      break;
    case Level::kAvx512Bf16:
      isa = dnnl_cpu_isa_avx512_core_bf16;
      break;
  }
  if (dnnl_set_max_cpu_isa(isa) == dnnl_success) return OkStatus();
  if (dnnl_get_effective_cpu_isa() == isa) return OkStatus();
  return FailedPrecondition("oneDNN has already run, so it cannot be limited to level {}",
                            Name(level));
}

}  // namespace troupe::kernels::cpu
