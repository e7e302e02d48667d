#include "kernels/xla/pjrt/buffer.h"

#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/xla/pjrt/call.h"

namespace troupe::kernels::xla {

PJRT_Buffer_Type TypeOf(model::DType dtype) {
  switch (dtype) {
    case model::DType::kFloat32:
      return PJRT_Buffer_Type_F32;
    case model::DType::kBFloat16:
      return PJRT_Buffer_Type_BF16;
    case model::DType::kFloat64:
      return PJRT_Buffer_Type_F64;
    case model::DType::kInt32:
      return PJRT_Buffer_Type_S32;
    case model::DType::kFloat8E4M3:
    case model::DType::kFloat8E5M2:
      break;
  }
  TROUPE_CHECK(false, "{} has no type in XLA's programs", model::Name(dtype));
}

int64_t BytesOf(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_PRED:
    case PJRT_Buffer_Type_S8:
    case PJRT_Buffer_Type_U8:
      return 1;
    case PJRT_Buffer_Type_S16:
    case PJRT_Buffer_Type_U16:
    case PJRT_Buffer_Type_F16:
    case PJRT_Buffer_Type_BF16:
      return 2;
    case PJRT_Buffer_Type_S32:
    case PJRT_Buffer_Type_U32:
    case PJRT_Buffer_Type_F32:
      return 4;
    case PJRT_Buffer_Type_S64:
    case PJRT_Buffer_Type_U64:
    case PJRT_Buffer_Type_F64:
      return 8;
    default:
      return 0;
  }
}

PjrtBuffer::~PjrtBuffer() {
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_Destroy_Args, destroy);
  destroy.buffer = buffer_;
  TakeStatus(api_, api_.PJRT_Buffer_Destroy(&destroy)).IgnoreError();
}

Status PjrtBuffer::Read(std::span<std::byte> bytes) const {
  if (static_cast<int64_t>(bytes.size()) != bytes_) {
    return InvalidArgument("{} bytes are to be read of a tensor that has {}", bytes.size(), bytes_);
  }
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_IsDeleted_Args, is_deleted);
  is_deleted.buffer = buffer_;
  Status status = TakeStatus(api_, api_.PJRT_Buffer_IsDeleted(&is_deleted));
  if (status.ok() && is_deleted.is_deleted) {
    return FailedPrecondition("a run has consumed the tensor, which was an argument of it");
  }
  if (status.ok()) status = Copy(bytes);
  return status.ok() ? status : Internal("{}", Message(status));
}

Status PjrtBuffer::Copy(std::span<std::byte> bytes) const {
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_Dimensions_Args, dimensions);
  dimensions.buffer = buffer_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Buffer_Dimensions(&dimensions)));

  // Without a layout the bytes would come as the device has them.
  std::vector<int64_t> minor_to_major(dimensions.num_dims);
  std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_MemoryLayout, row_major);
  row_major.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  row_major.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  row_major.tiled.minor_to_major = minor_to_major.data();
  row_major.tiled.minor_to_major_size = minor_to_major.size();

  std::byte nothing;  // a null pointer would ask for the size
  TROUPE_PJRT_ARGUMENTS(PJRT_Buffer_ToHostBuffer_Args, copy);
  copy.src = buffer_;
  copy.host_layout = &row_major;
  copy.dst = bytes.empty() ? &nothing : bytes.data();
  copy.dst_size = bytes.size();
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Buffer_ToHostBuffer(&copy)));
  return AwaitAndDestroy(api_, copy.event);
}

}  // namespace troupe::kernels::xla
