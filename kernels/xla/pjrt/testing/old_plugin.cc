// A plugin whose interface is a version older than our header's. Nothing in it can be called.
#include <pjrt_c_api.h>

extern "C" const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = {
      .struct_size = PJRT_Api_STRUCT_SIZE,
      .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                           .major_version = PJRT_API_MAJOR,
                           .minor_version = PJRT_API_MINOR - 1},
  };
  return &api;
}
