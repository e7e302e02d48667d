#include "worker/executor/communicators.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "collective/digest.h"
#include "model/program/op_rules.h"
#include "worker/executor/action_runs.h"

namespace troupe {
namespace {

using model::Piece;

CollectiveOperation OperationOf(model::OpKind kind) {
  const auto& rules = model::RulesOf(kind).collective;
  if (!rules.has_value()) return CollectiveOperation::kAllReduce;  // kCopy
  switch (rules->pattern) {
    case model::CollectivePattern::kReduceScatter:
      return CollectiveOperation::kReduceScatter;
    case model::CollectivePattern::kGather:
      return CollectiveOperation::kAllGather;
    case model::CollectivePattern::kExchange:
      return CollectiveOperation::kAllToAll;
    case model::CollectivePattern::kAllReduce:
      break;
  }
  return CollectiveOperation::kAllReduce;
}

// Digests the collectives of one group in the order in which a step issues them.
class GroupDigest {
 public:
  GroupDigest(const model::Program& program, const model::CollectiveGroup& group,
              const std::string& name)
      : program_(program), group_(group), digest_(name) {}

  void Add(std::span<const model::Op> ops, bool last_microbatch = false) {
    for (const model::Op& op : ops) {
      if (op.last_microbatch && !last_microbatch) continue;
      const auto* attributes = model::FindCollective(op.attributes);
      if (attributes == nullptr || !(attributes->group == group_)) continue;
      // The bytes of all blocks together, which are equal on all ranks.
      size_t bytes = 0;
      for (model::ValueId whole : op.kind == model::OpKind::kAllGather ? op.outputs : op.inputs) {
        bytes += static_cast<size_t>(program_.value(whole).bytes());
      }
      const std::string reduction =
          fmt::format("{} {}",
                      ReduceOf(op) == model::ReduceKind::kMax ? "max"
                      : WireOf(op) == model::DType::kBFloat16 ? "sum as bf16"
                                                              : "sum",
                      Name(program_.value(op.inputs[0]).dtype));
      digest_.Add(OperationOf(op.kind), bytes, reduction, attributes->purpose);
    }
  }

  uint64_t value() const { return digest_.value(); }

 private:
  const model::Program& program_;
  const model::CollectiveGroup group_;
  OperationDigest digest_;
};

uint64_t DigestOf(const model::Program& program, const ActionList& list,
                  const model::CollectiveGroup& group, const std::string& name) {
  GroupDigest digest(program, group, name);
  for (size_t c = 0; c < program.chunks.size(); ++c)
    digest.Add(program.Ops(static_cast<int>(c), Piece::kUnshard));
  for (const ActionRun& run : RunsOf(list, program)) {
    const RankAction& action = list.actions[static_cast<size_t>(run.action)];
    const std::span<const model::Op> ops = program.Ops(action.chunk_index, action.piece);
    digest.Add(
        ops.subspan(static_cast<size_t>(run.begin), static_cast<size_t>(run.end - run.begin)),
        action.last_microbatch);
  }
  for (size_t c = 0; c < program.chunks.size(); ++c)
    digest.Add(program.Ops(static_cast<int>(c), Piece::kReduce));
  digest.Add(program.update);
  return digest.value();
}

}  // namespace

StatusOr<Communicators> Communicators::Make(const model::Program& program, const GroupMesh& mesh,
                                            int rank, const std::vector<int>& pipe_rank_of_chunk,
                                            CollectiveNetwork& network) {
  Communicators made;
  for (const UsedGroup& used : GroupsOf(program)) {
    const std::vector<int> ranks = RanksOfGroup(mesh, rank, used.group);
    if (ranks.size() < 2) continue;
    const std::string axis = AxisText(mesh, used.group);
    std::string name = fmt::format("{}[{}]", axis, fmt::join(ranks, ","));
    // Groups that differ only in axes of one rank have the same ranks and hence the same name: for
    // example the group of `expert` and that of all data axes, `expert` included.
    const bool taken = std::any_of(made.groups_.begin(), made.groups_.end(),
                                   [&](const NamedGroup& named) { return named.name == name; });
    if (taken) name = fmt::format("{}[{}]", ToText(used.group), fmt::join(ranks, ","));
    TROUPE_ASSIGN_OR_RETURN(Communicator * communicator,
                            network.MakeCommunicator(axis, used.purpose, ranks, name));
    made.groups_.push_back({used.group, name, communicator});
  }
  const model::PerAxis mine = mesh.mesh.CoordinatesOf(rank);
  const auto peer = [&](int pipe_rank) {
    model::PerAxis coordinates = mine;
    coordinates[model::Axis::kPipe] = pipe_rank;
    return mesh.mesh.RankOf(coordinates);
  };
  for (size_t chunk = 0; chunk + 1 < pipe_rank_of_chunk.size(); ++chunk) {
    const int below = peer(pipe_rank_of_chunk[chunk]);
    const int above = peer(pipe_rank_of_chunk[chunk + 1]);
    // Data that stay on one rank are copied in its memory and need no communicator.
    if (below == above) continue;
    if (rank != below && rank != above) continue;
    for (const LinkDirection direction : {LinkDirection::kActivation, LinkDirection::kGradient}) {
      const bool up = direction == LinkDirection::kActivation;
      const std::vector<int> ranks =
          up ? std::vector<int>{below, above} : std::vector<int>{above, below};
      const std::string name = fmt::format("{}[chunk {}, {}->{}]", up ? "activation" : "gradient",
                                           chunk, ranks[0], ranks[1]);
      TROUPE_ASSIGN_OR_RETURN(
          Communicator * communicator,
          network.MakeCommunicator(model::Name(model::Axis::kPipe), Purpose::kPipe, ranks, name));
      made.links_.push_back({static_cast<int>(chunk), direction, name, communicator});
    }
  }
  return made;
}

Communicator* Communicators::Find(const model::CollectiveGroup& group) const {
  for (const NamedGroup& named : groups_) {
    if (named.group == group) return named.communicator;
  }
  return nullptr;
}

Communicator* Communicators::Link(int chunk, LinkDirection direction) const {
  for (const NamedLink& link : links_) {
    if (link.chunk == chunk && link.direction == direction) return link.communicator;
  }
  return nullptr;
}

std::vector<Communicator*> Communicators::Links() const {
  std::vector<Communicator*> links;
  for (const NamedLink& link : links_) links.push_back(link.communicator);
  return links;
}

Status Communicators::CompareDigests(const model::Program& program, const ActionList& list) const {
  // A difference in one group must not keep its ranks from comparing the other groups, or the other
  // ranks would wait for them. All ranks compare last and include whether their other groups were
  // equal, so every rank reports a difference that any rank found.
  Status first_difference;
  const auto compare = [&](Communicator* communicator, uint64_t digest,
                           const std::string& name) -> Status {
    const Status status = communicator->CompareDigest(digest);
    if (status.ok() || status.code() != StatusCode::kFailedPrecondition) return status;
    if (first_difference.ok())
      first_difference = Annotate(status, fmt::format("collectives of {}", name));
    return OkStatus();
  };
  // Groups come in an order that all ranks share and pipeline links in the order of their chunks,
  // so no two ranks wait for each other in a cycle.
  const NamedGroup* all = nullptr;
  for (const NamedGroup& named : groups_) {
    if (named.group.kind == model::CollectiveGroup::Kind::kAll) {
      all = &named;
      continue;
    }
    TROUPE_RETURN_IF_ERROR(
        compare(named.communicator, DigestOf(program, list, named.group, named.name), named.name));
  }
  for (const NamedLink& link : links_) {
    const bool up = link.direction == LinkDirection::kActivation;
    OperationDigest digest(link.name);
    for (const RankAction& action : list.actions) {
      const model::ChunkInterface& chunk = program.chunks[action.chunk_index];
      if ((action.piece == Piece::kForward) != up) continue;
      model::ValueId value = model::kNoValue;
      if (action.sends && action.chunk == (up ? link.chunk : link.chunk + 1)) {
        value = up ? chunk.output : chunk.input_gradient;
      } else if (action.receives && action.chunk == (up ? link.chunk + 1 : link.chunk)) {
        value = up ? chunk.input : chunk.output_gradient;
      }
      if (value == model::kNoValue) continue;
      digest.Add(CollectiveOperation::kSend, static_cast<size_t>(program.value(value).bytes()), "",
                 Purpose::kPipe);
      // Both sides must agree on which microbatch is sent.
      digest.Add(CollectiveOperation::kSend, static_cast<size_t>(action.microbatch), "",
                 Purpose::kPipe);
    }
    TROUPE_RETURN_IF_ERROR(compare(link.communicator, digest.value(), link.name));
  }
  if (all != nullptr) {
    const uint64_t digest = DigestOf(program, list, all->group, all->name);
    TROUPE_RETURN_IF_ERROR(
        compare(all->communicator, first_difference.ok() ? digest : ~digest, all->name));
  }
  return first_difference;
}

}  // namespace troupe
