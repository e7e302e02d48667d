#include "model/program/value.h"

namespace troupe::model {

int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kBFloat16:
      return 2;
    case DType::kFloat64:
      return 8;
    case DType::kInt32:
      return 4;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return 1;
  }
  return 0;
}

const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f32";
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat64:
      return "f64";
    case DType::kInt32:
      return "i32";
    case DType::kFloat8E4M3:
      return "f8e4m3";
    case DType::kFloat8E5M2:
      return "f8e5m2";
  }
  return "?";
}

const char* Name(Role role) {
  static constexpr const char* kNames[] = {
      "parameter",       "compute_copy", "gradient", "microbatch_gradient",
      "optimizer_state", "state",        "input",    "constant",
      "activation",      "saved",        "boundary"};
  return kNames[static_cast<int>(role)];
}

}  // namespace troupe::model
