// A model of the actor that tests a host's devices and folders (worker/daemon/burn_in_actor.h).
#ifndef TROUPE_TESTS_SIMULATION_BURN_IN_MODEL_H_
#define TROUPE_TESTS_SIMULATION_BURN_IN_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "actor/actor.h"
#include "tests/simulation/world.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/event_sender.h"

namespace troupe::simulation {

class BurnInModel final : public Actor {
 public:
  BurnInModel(World& world, std::string worker) : world_(world), worker_(std::move(worker)) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  World& world_;
  const std::string worker_;
  std::unique_ptr<EventSender> events_;
  v1::BurnIn request_;  // the newest
  TimerId end_;         // ends request_
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_BURN_IN_MODEL_H_
