// Table of the communicators of one rank: one for each group that its program names and one for
// each directed pipeline link. The network owns the communicators.
#ifndef TROUPE_WORKER_EXECUTOR_COMMUNICATORS_H_
#define TROUPE_WORKER_EXECUTOR_COMMUNICATORS_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/network.h"
#include "model/program/program.h"
#include "worker/executor/group.h"
#include "worker/executor/rank_action.h"

namespace troupe {

enum class LinkDirection { kActivation, kGradient };

class Communicators {
 public:
  // Makes the communicators in `network`; call before the network is connected.
  // `pipe_rank_of_chunk` covers the chunks of the whole model.
  static StatusOr<Communicators> Make(const model::Program& program, const GroupMesh& mesh,
                                      int rank, const std::vector<int>& pipe_rank_of_chunk,
                                      CollectiveNetwork& network);

  // Null if the group has only one rank or the program does not use it.
  Communicator* Find(const model::CollectiveGroup& group) const;

  // The pipeline link between `chunk` and `chunk + 1`: activations go up, gradients go down. Null
  // if this rank owns neither chunk or both.
  Communicator* Link(int chunk, LinkDirection direction) const;

  // All pipeline links of this rank, ordered by chunk.
  std::vector<Communicator*> Links() const;

  // Compares, in every group, whether all ranks have the same ordered collectives in a step.
  // Collective. Returns FAILED_PRECONDITION, which names group and ranks, if they differ.
  Status CompareDigests(const model::Program& program, const ActionList& actions) const;

 private:
  struct NamedGroup {
    model::CollectiveGroup group;
    std::string name;
    Communicator* communicator;
  };
  struct NamedLink {
    int chunk;
    LinkDirection direction;
    std::string name;
    Communicator* communicator;
  };
  std::vector<NamedGroup> groups_;
  std::vector<NamedLink> links_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_COMMUNICATORS_H_
