// The communicators of one rank: one for each group that its program names, and one for each
// directed edge of the pipeline. Owned by the network; this is the table of them.
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

enum class EdgeDirection { kActivation, kGradient };

class Communicators {
 public:
  // `pipe_rank_of_chunk`: of the whole model. Before the network is connected.
  static StatusOr<Communicators> Make(const model::Program& program, const GroupMesh& mesh,
                                      int rank, const std::vector<int>& pipe_rank_of_chunk,
                                      CollectiveNetwork& network);

  // Null where the group has one rank (or the program does not use it).
  Communicator* Find(const model::CollectiveGroup& group) const;

  // Between `chunk` and `chunk + 1`; activations go up, gradients down. Null if this rank owns
  // neither, or both.
  Communicator* Edge(int chunk, EdgeDirection direction) const;

  // All of this rank, by chunk.
  std::vector<Communicator*> Edges() const;

  // On every group: do all ranks have the same ordered collectives in a step? FAILED_PRECONDITION
  // names group and ranks.
  Status CompareDigests(const model::Program& program, const ActionList& actions) const;

 private:
  struct NamedGroup {
    model::CollectiveGroup group;
    std::string name;
    Communicator* communicator;
  };
  struct NamedEdge {
    int chunk;
    EdgeDirection direction;
    std::string name;
    Communicator* communicator;
  };
  std::vector<NamedGroup> groups_;
  std::vector<NamedEdge> edges_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_COMMUNICATORS_H_
