#include "cli/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace troupe {
namespace {

constexpr int kSchedule = 0;
constexpr int kOperations = 1;
constexpr int kCheckpoint = 2;
constexpr int kFirstOfCommunication = 10;

int64_t WallTime(const v1::RankTrace& trace, const v1::TraceEvent& event) {
  return event.begin_ns() + trace.realtime_offset_ns();
}

std::string NameOf(const v1::RankTrace& trace, int32_t index) {
  return index >= 0 && index < trace.names_size() ? trace.names(index) : "unknown";
}

// Assigns separate lanes to overlapping events.
class Lanes {
 public:
  explicit Lanes(int first) : next_(first) {}

  // REQUIRES: called in the order of `begin` for each `name`.
  int Of(const std::string& name, int64_t begin, int64_t end) {
    std::vector<Lane>& lanes = lanes_[name];
    for (Lane& lane : lanes) {
      if (lane.busy_until > begin) continue;
      lane.busy_until = end;
      return lane.number;
    }
    const int number = next_++;
    lanes.push_back({number, end});
    names_[number] = lanes.size() == 1 ? name : fmt::format("{} {}", name, lanes.size());
    return number;
  }

  const std::map<int, std::string>& names() const { return names_; }

 private:
  struct Lane {
    int number = 0;
    int64_t busy_until = 0;
  };
  int next_;
  std::map<std::string, std::vector<Lane>> lanes_;
  std::map<int, std::string> names_;
};

Json Meta(const char* what, int rank, int lane, Json arguments) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", lane}, {"args", std::move(arguments)}};
}

// Returns a text such as "rank 2 (pipe 1, tensor 0) on worker-1".
std::string ProcessName(const v1::RankTrace& trace, const v1::Job& job) {
  std::string name = fmt::format("rank {}", trace.rank());
  for (const v1::RankStatus& rank : job.ranks()) {
    if (rank.rank() != trace.rank()) continue;
    const Json degrees = MessageToJson(job.layout());
    const Json coordinates = MessageToJson(rank.coordinates());
    std::string where;
    for (const auto& degree : degrees.items()) {  // in the order of the mesh's axes
      if (degree.value().get<int>() <= 1) continue;
      where += fmt::format("{}{} {}", where.empty() ? "" : ", ", degree.key(),
                           coordinates.at(degree.key()).get<int>());
    }
    if (!where.empty()) name += fmt::format(" ({})", where);
    name += " on " + rank.worker();
  }
  return name;
}

void AddRank(const v1::RankTrace& trace, const v1::Job& job, int64_t base, Json* events) {
  const int rank = trace.rank();
  events->push_back(Meta("process_name", rank, 0, {{"name", ProcessName(trace, job)}}));
  events->push_back(Meta("process_sort_index", rank, 0, {{"sort_index", rank}}));
  std::vector<const v1::TraceEvent*> ordered;
  for (const v1::TraceEvent& event : trace.events()) ordered.push_back(&event);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto* a, const auto* b) { return a->begin_ns() < b->begin_ns(); });
  Lanes communication(kFirstOfCommunication);
  // A save may begin while the step thread waits for the previous one.
  Lanes checkpoint(kCheckpoint);
  for (const v1::TraceEvent* event : ordered) {
    const int64_t end = event->begin_ns() + event->duration_ns();
    Json arguments = {{"step", event->step()}};
    int lane = kSchedule;
    switch (event->kind()) {
      case v1::TraceEvent::OPERATION:
        lane = kOperations;
        break;
      case v1::TraceEvent::CHECKPOINT:
        lane = checkpoint.Of("checkpoint", event->begin_ns(), end);
        break;
      case v1::TraceEvent::COLLECTIVE:
        lane = communication.Of(NameOf(trace, event->lane()), event->begin_ns(), end);
        arguments["group"] = NameOf(trace, event->lane());
        arguments["bytes"] = event->bytes();
        arguments["exposed_microseconds"] = static_cast<double>(event->exposed_ns()) * 1e-3;
        break;
      case v1::TraceEvent::ACTION:
        arguments["chunk"] = event->chunk();
        arguments["microbatch"] = event->microbatch();
        break;
      default:
        break;
    }
    events->push_back({{"ph", "X"},
                       {"name", NameOf(trace, event->name())},
                       {"pid", rank},
                       {"tid", lane},
                       {"ts", static_cast<double>(WallTime(trace, *event) - base) * 1e-3},
                       {"dur", static_cast<double>(event->duration_ns()) * 1e-3},
                       {"args", std::move(arguments)}});
  }
  std::map<int, std::string> names = communication.names();
  names.insert(checkpoint.names().begin(), checkpoint.names().end());
  names[kSchedule] = "compute";
  names[kOperations] = "operations";
  for (const auto& [lane, name] : names) {
    events->push_back(Meta("thread_name", rank, lane, {{"name", name}}));
    events->push_back(Meta("thread_sort_index", rank, lane, {{"sort_index", lane}}));
  }
}

}  // namespace

Json TraceToJson(const v1::TraceJobResponse& trace, const v1::Job& job) {
  int64_t base = std::numeric_limits<int64_t>::max();
  for (const v1::RankTrace& rank : trace.ranks()) {
    for (const v1::TraceEvent& event : rank.events()) base = std::min(base, WallTime(rank, event));
  }
  Json events = Json::array();
  Json clocks = Json::array();
  for (const v1::RankTrace& rank : trace.ranks()) {
    AddRank(rank, job, base, &events);
    clocks.push_back(MessageToJson(rank, {"rank", "realtime_offset_ns", "dropped_operations"}));
  }
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ms"},
          {"otherData",
           {{"job", job.name()},
            {"group_epoch", trace.ranks_size() > 0 ? trace.ranks(0).group_epoch() : 0},
            {"plan_digest", job.plan().digest()},
            {"begin_unix_ns", trace.ranks_size() > 0 ? base : 0},
            {"clocks", std::move(clocks)}}}};
}

}  // namespace troupe
