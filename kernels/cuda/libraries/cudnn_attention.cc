#include "kernels/cuda/libraries/cudnn_attention.h"

#include <cudnn.h>

#include <utility>

#include "base/log.h"
#include "kernels/cuda/libraries/cudnn_attention_graph.h"
#include "kernels/cuda/libraries/cudnn_library.h"
#include "kernels/cuda/runtime/outside_of_capture.h"

namespace troupe::kernels::cuda {
namespace {

Status FromCudnn(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return OkStatus();
  const std::string text = fmt::format("{}: {}", what, cudnnGetErrorString(status));
  switch (status) {
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
      return MakeStatus(StatusCode::kResourceExhausted, text);
    default:
      return MakeStatus(StatusCode::kInternal, text);
  }
}

template <typename Args>
class CudnnCall : public LibraryAttentionOf<Args> {
 public:
  // `graph` computes the part of `shape` that `call` covers.
  CudnnCall(CudaDevice& device, cudnnHandle_t handle, const LibraryAttentionShape& shape,
            const GradientCall& call, std::unique_ptr<CudnnAttentionGraph> graph)
      : device_(device), handle_(handle), shape_(shape), call_(call), graph_(std::move(graph)) {}
  ~CudnnCall() override {
    // Destroying the graph would wait for the device.
    if (!device_.CanFree()) static_cast<void>(graph_.release());
  }

  int64_t workspace_bytes() const override { return graph_->workspace_bytes(); }
  std::string implementation() const override {
    std::string text = fmt::format("cuDNN {} {}", CudnnVersionText(), graph_->plan());
    if (call_.key_value_heads < shape_.key_value_heads) {
      text += fmt::format(", {} heads of keys a call", call_.key_value_heads);
    } else if (call_.samples < shape_.samples) {
      text += fmt::format(", {} samples a call", call_.samples);
    }
    return text;
  }
  Status Enqueue(const Args& args, void* workspace, Stream stream) override {
    TROUPE_RETURN_IF_ERROR(device_.Enter());
    const OutsideOfCapture outside;  // at first use it loads kernels and makes its own streams
    TROUPE_RETURN_IF_ERROR(
        FromCudnn(cudnnSetStream(handle_, device_.native_stream(stream)), "cuDNN's stream"));
    for (int64_t first = 0; first < shape_.samples; first += call_.samples) {
      TROUPE_RETURN_IF_ERROR(EnqueueHeads(SamplesFrom(first, shape_, args), workspace));
    }
    return OkStatus();
  }

 private:
  // Enqueues the heads of as many samples as a call covers.
  Status EnqueueHeads(const AttentionArgs& args, void* workspace) {
    return graph_->Enqueue(handle_, args, workspace);
  }
  Status EnqueueHeads(const AttentionGradArgs& args, void* workspace) {
    for (int64_t first = 0; first < shape_.key_value_heads; first += call_.key_value_heads) {
      TROUPE_RETURN_IF_ERROR(graph_->Enqueue(handle_, HeadsFrom(first, shape_, args), workspace));
    }
    return OkStatus();
  }

  CudaDevice& device_;
  const cudnnHandle_t handle_;
  const LibraryAttentionShape shape_;
  const GradientCall call_;
  std::unique_ptr<CudnnAttentionGraph> graph_;
};

class CudnnAttentionLibrary : public AttentionLibrary {
 public:
  CudnnAttentionLibrary(CudaDevice& device, const CudnnAttentionOptions& options)
      : device_(device), options_(options) {}
  ~CudnnAttentionLibrary() override {
    if (target_.handle != nullptr && device_.CanFree()) cudnnDestroy(target_.handle);
  }

  Status Open() {
    TROUPE_RETURN_IF_ERROR(LoadCudnn());
    TROUPE_RETURN_IF_ERROR(device_.Enter());
    const CudaDeviceFacts& facts = device_.facts();
    target_.capability = 10 * facts.capability_major + facts.capability_minor;
    target_.multiprocessors = facts.multiprocessors;
    if (const cudnnStatus_t status = cudnnCreate(&target_.handle); status != CUDNN_STATUS_SUCCESS) {
      return Unavailable("cuDNN cannot be initialised: {}", cudnnGetErrorString(status));
    }
    return OkStatus();
  }

  StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) override {
    return PrepareCall<AttentionArgs>(
        "forward", shape, {shape.samples, shape.key_value_heads},
        [&] { return CudnnAttentionGraph::MakeForward(shape, target_); });
  }
  StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) override {
    const GradientCall call = GradientCallOf(shape, options_.workspace_limit);
    return PrepareCall<AttentionGradArgs>("gradient", shape, call, [&] {
      return CudnnAttentionGraph::MakeGradient(shape, call, target_);
    });
  }

 private:
  template <typename Args, typename MakeGraph>
  StatusOr<std::unique_ptr<LibraryAttentionOf<Args>>> PrepareCall(
      const char* pass, const LibraryAttentionShape& shape, const GradientCall& call,
      const MakeGraph& make) {
    // float32 must not be computed in TF32.
    if (!shape.bfloat16 || shape.rows() == 0) return nullptr;
    TROUPE_RETURN_IF_ERROR(device_.Enter());
    StatusOr<std::unique_ptr<CudnnAttentionGraph>> graph = make();
    if (graph.ok() && (*graph)->workspace_bytes() > options_.workspace_limit) {
      graph = Unimplemented("it needs {} bytes of working memory, more than {}",
                            (*graph)->workspace_bytes(), options_.workspace_limit);
    }
    if (graph.status().code() == StatusCode::kUnimplemented) {
      LogInfo("cuda", "attention uses our own kernels, {}, {}: {}", pass, ShapeText(shape),
              Message(graph.status()));
      return nullptr;
    }
    TROUPE_RETURN_IF_ERROR(graph.status());
    return std::make_unique<CudnnCall<Args>>(device_, target_.handle, shape, call,
                                             std::move(*graph));
  }

  CudaDevice& device_;
  const CudnnAttentionOptions options_;
  CudnnTarget target_;
};

}  // namespace

StatusOr<CudnnAttention> MakeCudnnAttention(CudaDevice& device,
                                            const CudnnAttentionOptions& options) {
  auto library = std::make_unique<CudnnAttentionLibrary>(device, options);
  TROUPE_RETURN_IF_ERROR(library->Open());
  return CudnnAttention{std::move(library), CudnnVersion()};
}

std::string CudnnInUse() { return LoadCudnn().ok() ? "cuDNN " + CudnnVersionText() : "no cuDNN"; }

}  // namespace troupe::kernels::cuda
