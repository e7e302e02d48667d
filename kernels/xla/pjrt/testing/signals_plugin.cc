// A plugin that handles signals, as libtpu does: SIGABRT from the time it is loaded, SIGSEGV,
// SIGTERM and SIGPROF from its initialization. Nothing else in it can be called.
#include <pjrt_c_api.h>
#include <signal.h>

namespace {

void Ignore(int /*signal*/) {}

[[maybe_unused]] const auto former = signal(SIGABRT, Ignore);

PJRT_Error* Initialize(PJRT_Plugin_Initialize_Args* /*arguments*/) {
  signal(SIGSEGV, Ignore);
  signal(SIGTERM, Ignore);
  signal(SIGPROF, Ignore);
  return nullptr;
}

}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = {
      .struct_size = PJRT_Api_STRUCT_SIZE,
      .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                           .major_version = PJRT_API_MAJOR,
                           .minor_version = PJRT_API_MINOR},
      .PJRT_Plugin_Initialize = Initialize,
  };
  return &api;
}
