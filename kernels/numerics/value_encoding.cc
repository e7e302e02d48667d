#include "kernels/numerics/value_encoding.h"

#include <cstring>

#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"

namespace troupe::kernels {
namespace {

template <typename T>
T Get(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void Put(std::byte* bytes, int64_t index, T value) {
  std::memcpy(bytes + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

void Decode(model::DType dtype, const std::byte* bytes, int64_t count, double* numbers) {
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case model::DType::kFloat32:
        numbers[i] = Get<float>(bytes, i);
        break;
      case model::DType::kBFloat16:
        numbers[i] = ToFloat(Get<BFloat16>(bytes, i));
        break;
      case model::DType::kFloat64:
        numbers[i] = Get<double>(bytes, i);
        break;
      case model::DType::kInt32:
        numbers[i] = Get<int32_t>(bytes, i);
        break;
      case model::DType::kFloat8E4M3:
        numbers[i] = FromFloat8(Float8Format::kE4M3, Get<uint8_t>(bytes, i));
        break;
      case model::DType::kFloat8E5M2:
        numbers[i] = FromFloat8(Float8Format::kE5M2, Get<uint8_t>(bytes, i));
        break;
    }
  }
}

void Encode(model::DType dtype, const double* numbers, int64_t count, std::byte* bytes) {
  for (int64_t i = 0; i < count; ++i) {
    switch (dtype) {
      case model::DType::kFloat32:
        Put(bytes, i, static_cast<float>(numbers[i]));
        break;
      case model::DType::kBFloat16:
        Put(bytes, i, ToBFloat16(static_cast<float>(numbers[i])));
        break;
      case model::DType::kFloat64:
        Put(bytes, i, numbers[i]);
        break;
      case model::DType::kInt32:
        Put(bytes, i, static_cast<int32_t>(numbers[i]));
        break;
      case model::DType::kFloat8E4M3:
        Put(bytes, i, ToFloat8(Float8Format::kE4M3, static_cast<float>(numbers[i])));
        break;
      case model::DType::kFloat8E5M2:
        Put(bytes, i, ToFloat8(Float8Format::kE5M2, static_cast<float>(numbers[i])));
        break;
    }
  }
}

}  // namespace troupe::kernels
