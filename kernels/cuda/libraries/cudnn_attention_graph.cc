// The only file that includes cuDNN's front end, which is slow to compile.
#include "kernels/cuda/libraries/cudnn_attention_graph.h"

#include <nvrtc.h>

// Used only by the front end's own engines, which no graph here requests; nothing that defines them
// is linked.
#pragma weak nvrtcCreateProgram
#pragma weak nvrtcCompileProgram
#pragma weak nvrtcDestroyProgram
#pragma weak nvrtcGetCUBIN
#pragma weak nvrtcGetCUBINSize
#pragma weak nvrtcGetProgramLog
#pragma weak nvrtcGetProgramLogSize

#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

// Used only by convolutions.
#pragma weak cudnnCreateFilterDescriptor
#pragma weak cudnnDestroyFilterDescriptor
#pragma weak cudnnReorderFilterAndBias
#pragma weak cudnnSetFilterNdDescriptor

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/cudnn_library.h"
#include "model/program/gpu_working_memory.h"

namespace troupe::kernels::cuda {
namespace {

namespace frontend = cudnn_frontend;
using frontend::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

enum Name : int64_t { kQ = 1, kK, kV, kO, kLse, kOutputGradient, kDq, kDk, kDv };

// Extents and strides of [samples, heads, tokens, width], in elements.
struct Layout {
  std::vector<int64_t> extents, strides;
};

// The layout of `samples` and `heads` of the shape within its rows.
Layout RowsOfQkv(const LibraryAttentionShape& shape, int64_t samples, int64_t heads) {
  return {{samples, heads, shape.tokens, shape.head_dim},
          {shape.tokens * shape.qkv_width(), shape.head_dim, shape.qkv_width(), 1}};
}

Layout RowsOfOutput(const LibraryAttentionShape& shape, int64_t samples, int64_t heads) {
  const int64_t width = shape.query_heads * shape.head_dim;
  return {{samples, heads, shape.tokens, shape.head_dim},
          {shape.tokens * width, shape.head_dim, width, 1}};
}

Layout LseByRows(const LibraryAttentionShape& shape) {
  return {{shape.samples, shape.query_heads, shape.tokens, 1},
          {shape.query_heads * shape.tokens, 1, shape.query_heads, 1}};
}

// The layout of contiguous heads: heads of one sample, or all heads of several.
Layout LseByHeads(const LibraryAttentionShape& shape, int64_t samples, int64_t heads) {
  return {{samples, heads, shape.tokens, 1}, {heads * shape.tokens, shape.tokens, 1, 1}};
}

void Describe(const Tensor& tensor, Name name, const Layout& layout, bool float32) {
  tensor->set_uid(name).set_dim(layout.extents).set_stride(layout.strides);
  if (float32) tensor->set_data_type(frontend::DataType_t::FLOAT);
}

Tensor Input(frontend::graph::Graph* graph, Name name, const Layout& layout, bool float32 = false) {
  const Tensor tensor = graph->tensor(Tensor_attributes().set_uid(name));
  Describe(tensor, name, layout, float32);
  return tensor;
}

void Output(const Tensor& tensor, Name name, const Layout& layout, bool float32 = false) {
  tensor->set_output(true);
  Describe(tensor, name, layout, float32);
}

// Each query attends to the keys up to its own position.
template <typename Attributes>
Attributes Causal(const LibraryAttentionShape& shape) {
  Attributes attributes;
  attributes.set_attn_scale(1.0f / std::sqrt(static_cast<float>(shape.head_dim)));
  attributes.set_diagonal_alignment(frontend::DiagonalAlignment_t::TOP_LEFT);
  attributes.set_diagonal_band_right_bound(0);
  return attributes;
}

Status FromFrontend(const frontend::error_object& error, StatusCode code) {
  if (error.is_good()) return OkStatus();
  return MakeStatus(code, fmt::format("cuDNN: {}", error.err_msg));
}

}  // namespace

GradientCall GradientCallOf(const LibraryAttentionShape& shape, int64_t workspace_limit) {
  const int64_t of_head =
      std::max<int64_t>(model::AttentionGradHeadBytes({.query_heads = shape.query_heads,
                                                       .key_value_heads = shape.key_value_heads,
                                                       .head_dim = shape.head_dim,
                                                       .tokens = shape.tokens}),
                        1);
  // The largest divisor of `all` that is at most `most`.
  const auto part = [](int64_t all, int64_t most) {
    int64_t count = std::clamp<int64_t>(most, 1, std::max<int64_t>(all, 1));
    while (all % count != 0) --count;
    return count;
  };
  const int64_t heads = (workspace_limit - model::kAttentionGradCallBytes) / of_head;
  return {part(shape.samples, heads / shape.key_value_heads), part(shape.key_value_heads, heads)};
}

struct CudnnAttentionGraph::Graph {
  frontend::graph::Graph graph;
  std::shared_ptr<frontend::DeviceProperties> device;
  int64_t workspace_bytes = 0;
  std::string plan;

  // Sets the data types that nodes added later inherit.
  Graph(const LibraryAttentionShape& shape, const CudnnTarget& target) {
    graph.set_sm_version(target.capability).set_sm_count(target.multiprocessors);
    graph
        .set_io_data_type(shape.bfloat16 ? frontend::DataType_t::BFLOAT16
                                         : frontend::DataType_t::FLOAT)
        .set_intermediate_data_type(frontend::DataType_t::FLOAT)
        .set_compute_data_type(frontend::DataType_t::FLOAT);
  }

  // Builds the first plan that cuDNN's heuristic proposes and that can be built.
  Status Build(const CudnnTarget& target) {
    const auto check = [](const frontend::error_object& error) {
      return FromFrontend(error, StatusCode::kUnimplemented);
    };
    if (target.handle == nullptr) {
      device = std::make_shared<frontend::DeviceProperties>();
      TROUPE_RETURN_IF_ERROR(check(
          device->deserialize({target.device_properties.begin(), target.device_properties.end()})));
      graph.set_device_properties(device);
    }
    TROUPE_RETURN_IF_ERROR(check(graph.validate()));
    TROUPE_RETURN_IF_ERROR(check(target.handle == nullptr
                                     ? graph.build_operation_graph()
                                     : graph.build_operation_graph(target.handle)));
    TROUPE_RETURN_IF_ERROR(check(graph.create_execution_plans({frontend::HeurMode_t::A})));
    TROUPE_RETURN_IF_ERROR(check(graph.check_support()));
    TROUPE_RETURN_IF_ERROR(
        check(graph.build_plans(frontend::BuildPlanPolicy_t::HEURISTICS_CHOICE)));
    TROUPE_RETURN_IF_ERROR(check(graph.get_workspace_size(workspace_bytes)));
    return check(graph.get_plan_name(plan));
  }

  Status Enqueue(cudnnContext* handle, const std::unordered_map<int64_t, void*>& addresses,
                 void* workspace) {
    std::unordered_map<int64_t, void*> given = addresses;
    return FromFrontend(graph.execute(handle, given, workspace), StatusCode::kInternal);
  }
};

CudnnAttentionGraph::CudnnAttentionGraph(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
CudnnAttentionGraph::~CudnnAttentionGraph() = default;

StatusOr<std::unique_ptr<CudnnAttentionGraph>> CudnnAttentionGraph::MakeForward(
    const LibraryAttentionShape& shape, const CudnnTarget& target) {
  auto made = std::make_unique<Graph>(shape, target);
  const Layout queries = RowsOfQkv(shape, shape.samples, shape.query_heads);
  const Layout keys = RowsOfQkv(shape, shape.samples, shape.key_value_heads);
  auto attributes = Causal<frontend::graph::SDPA_attributes>(shape);
  attributes.set_generate_stats(true);
  const auto [o, lse] =
      made->graph.sdpa(Input(&made->graph, kQ, queries), Input(&made->graph, kK, keys),
                       Input(&made->graph, kV, keys), attributes);
  Output(o, kO, RowsOfOutput(shape, shape.samples, shape.query_heads));
  Output(lse, kLse, LseByRows(shape), /*float32=*/true);
  TROUPE_RETURN_IF_ERROR(made->Build(target));
  return std::unique_ptr<CudnnAttentionGraph>(new CudnnAttentionGraph(std::move(made)));
}

StatusOr<std::unique_ptr<CudnnAttentionGraph>> CudnnAttentionGraph::MakeGradient(
    const LibraryAttentionShape& shape, const GradientCall& call, const CudnnTarget& target) {
  auto made = std::make_unique<Graph>(shape, target);
  const int64_t query_heads = call.key_value_heads * (shape.query_heads / shape.key_value_heads);
  const Layout queries = RowsOfQkv(shape, call.samples, query_heads);
  const Layout keys = RowsOfQkv(shape, call.samples, call.key_value_heads);
  const Layout output = RowsOfOutput(shape, call.samples, query_heads);
  const Layout lse = LseByHeads(shape, call.samples, query_heads);
  auto attributes = Causal<frontend::graph::SDPA_backward_attributes>(shape);
  attributes.set_deterministic_algorithm(true);
  frontend::graph::Graph* const graph = &made->graph;
  const auto [dq, dk, dv] = graph->sdpa_backward(
      Input(graph, kQ, queries), Input(graph, kK, keys), Input(graph, kV, keys),
      Input(graph, kO, output), Input(graph, kOutputGradient, output),
      Input(graph, kLse, lse, /*float32=*/true), attributes);
  Output(dq, kDq, queries);
  Output(dk, kDk, keys);
  Output(dv, kDv, keys);
  TROUPE_RETURN_IF_ERROR(made->Build(target));
  return std::unique_ptr<CudnnAttentionGraph>(new CudnnAttentionGraph(std::move(made)));
}

int64_t CudnnAttentionGraph::workspace_bytes() const { return graph_->workspace_bytes; }
std::string CudnnAttentionGraph::plan() const { return graph_->plan; }

Status CudnnAttentionGraph::Enqueue(cudnnContext* handle, const AttentionArgs& args,
                                    void* workspace) const {
  // cuDNN takes pointers to non-const data.
  const auto read = [](const void* address) { return const_cast<void*>(address); };
  return graph_->Enqueue(
      handle,
      {{kQ, read(args.q)}, {kK, read(args.k)}, {kV, read(args.v)}, {kO, args.o}, {kLse, args.lse}},
      workspace);
}

Status CudnnAttentionGraph::Enqueue(cudnnContext* handle, const AttentionGradArgs& args,
                                    void* workspace) const {
  const auto read = [](const void* address) { return const_cast<void*>(address); };
  return graph_->Enqueue(handle,
                         {{kQ, read(args.q)},
                          {kK, read(args.k)},
                          {kV, read(args.v)},
                          {kO, read(args.o)},
                          {kOutputGradient, read(args.output_gradient)},
                          {kLse, read(args.lse)},
                          {kDq, args.dq},
                          {kDk, args.dk},
                          {kDv, args.dv}},
                         workspace);
}

}  // namespace troupe::kernels::cuda
