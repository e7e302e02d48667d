#include "kernels/xla/pjrt/call.h"

#include <string_view>

namespace troupe::kernels::xla {
namespace {

// PJRT's codes are those of absl.
StatusCode CodeOf(PJRT_Error_Code code) {
  if (code == PJRT_Error_Code_UNKNOWN || code <= PJRT_Error_Code_OK ||
      code > PJRT_Error_Code_UNAUTHENTICATED) {
    return StatusCode::kInternal;
  }
  return static_cast<StatusCode>(code);
}

void Destroy(const PJRT_Api& api, PJRT_Error* error) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Error_Destroy_Args, destroy);
  destroy.error = error;
  api.PJRT_Error_Destroy(&destroy);
}

}  // namespace

Status TakeStatus(const PJRT_Api& api, PJRT_Error* error) {
  if (error == nullptr) return OkStatus();
  TROUPE_PJRT_ARGUMENTS(PJRT_Error_GetCode_Args, get_code);
  get_code.error = error;
  StatusCode code = StatusCode::kInternal;
  if (PJRT_Error* const second = api.PJRT_Error_GetCode(&get_code); second == nullptr) {
    code = CodeOf(get_code.code);
  } else {
    Destroy(api, second);
  }
  TROUPE_PJRT_ARGUMENTS(PJRT_Error_Message_Args, message);
  message.error = error;
  api.PJRT_Error_Message(&message);
  std::string_view text(message.message, message.message_size);
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  Status status = MakeStatus(code, text);
  Destroy(api, error);
  return status;
}

Status AwaitAndDestroy(const PJRT_Api& api, PJRT_Event* event) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Event_Await_Args, await);
  await.event = event;
  Status status = TakeStatus(api, api.PJRT_Event_Await(&await));
  TROUPE_PJRT_ARGUMENTS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = event;
  const Status destroyed = TakeStatus(api, api.PJRT_Event_Destroy(&destroy));
  return status.ok() ? destroyed : status;
}

}  // namespace troupe::kernels::xla
