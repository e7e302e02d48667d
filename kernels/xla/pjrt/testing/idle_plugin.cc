// A plugin on a machine without its devices: it can be loaded, and makes no client.
#include <pjrt_c_api.h>

#include <cstring>

struct PJRT_Error {
  const char* message;
};

namespace {

PJRT_Error no_device = {"there is no device\n"};

PJRT_Error* Initialize(PJRT_Plugin_Initialize_Args* /*arguments*/) { return nullptr; }

PJRT_Error* CreateClient(PJRT_Client_Create_Args* /*arguments*/) { return &no_device; }

PJRT_Error* GetCode(PJRT_Error_GetCode_Args* arguments) {
  arguments->code = PJRT_Error_Code_NOT_FOUND;
  return nullptr;
}

void GetMessage(PJRT_Error_Message_Args* arguments) {
  arguments->message = arguments->error->message;
  arguments->message_size = std::strlen(arguments->message);
}

void DestroyError(PJRT_Error_Destroy_Args* /*arguments*/) {}

}  // namespace

extern "C" const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = {
      .struct_size = PJRT_Api_STRUCT_SIZE,
      .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                           .major_version = PJRT_API_MAJOR,
                           .minor_version = PJRT_API_MINOR},
      .PJRT_Error_Destroy = DestroyError,
      .PJRT_Error_Message = GetMessage,
      .PJRT_Error_GetCode = GetCode,
      .PJRT_Plugin_Initialize = Initialize,
      .PJRT_Client_Create = CreateClient,
  };
  return &api;
}
