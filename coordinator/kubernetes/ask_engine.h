// A question to the engine that its asker waits for.
#ifndef TROUPE_COORDINATOR_KUBERNETES_ASK_ENGINE_H_
#define TROUPE_COORDINATOR_KUBERNETES_ASK_ENGINE_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/engine/engine.h"
#include "coordinator/machine/coordinator_state.h"

namespace troupe {

inline constexpr Duration kEngineAnswerLimit = std::chrono::seconds(5);

// Returns what `read` returns for the durable state. DEADLINE_EXCEEDED if the engine has not
// answered in time, and else the error of Engine::Query; `read` may run after that.
template <typename Read>
StatusOr<std::invoke_result_t<Read, const CoordinatorState&>> AskEngine(Engine& engine, Read read) {
  // The answer never comes if the engine ends.
  struct Answer {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<std::invoke_result_t<Read, const CoordinatorState&>> value;
  };
  const auto answer = std::make_shared<Answer>();
  TROUPE_RETURN_IF_ERROR(
      engine.Query([answer, read = std::move(read)](const CoordinatorState& state) {
        auto value = read(state);
        const std::lock_guard lock(answer->mutex);
        answer->value = std::move(value);
        answer->arrived.notify_all();
      }));
  std::unique_lock lock(answer->mutex);
  if (!answer->arrived.wait_for(lock, kEngineAnswerLimit,
                                [&] { return answer->value.has_value(); }))
    return DeadlineExceeded("the engine has not answered");
  return *std::move(answer->value);
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_ASK_ENGINE_H_
