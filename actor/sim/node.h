// Types of simulated nodes: a node's id, the kinds of crash, and the context passed to its
// processes at the start.
#ifndef TROUPE_ACTOR_SIM_NODE_H_
#define TROUPE_ACTOR_SIM_NODE_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actor/actor.h"
#include "base/status.h"
#include "base/store/store.h"

namespace troupe {

struct NodeId {
  uint32_t value = 0;
  friend auto operator<=>(NodeId, NodeId) = default;
};

enum class CrashKind {
  kProcess,  // killed: the kernel closes its connections, peers notice soon
  kHost,     // power loss: peers notice only when they give up or the host is back
};

enum class WriteCrash {
  kBefore,   // nothing of the batch is stored
  kDurable,  // all of the batch is stored, but nobody was notified
};

// The environment of a node's boot. Valid during the boot; store() and the spawned actors stay
// valid until the node's next crash.
class NodeContext {
 public:
  virtual ~NodeContext() = default;
  virtual NodeId node() const = 0;
  // 1 for the first start.
  virtual uint64_t boots() const = 0;
  virtual MonotonicTime Now() const = 0;
  virtual int64_t WallNanoseconds() const = 0;
  virtual Store& store() = 0;
  virtual Address Spawn(std::string name, std::unique_ptr<Actor> actor,
                        SpawnOptions options = {}) = 0;
};

using NodeBoot = std::function<void(NodeContext& context)>;

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_NODE_H_
