// Lower bounds on the seconds of a device and of its links. Pure.
#ifndef TROUPE_PLAN_SEARCH_WORK_H_
#define TROUPE_PLAN_SEARCH_WORK_H_

#include <cstdint>
#include <vector>

#include "model/program/program.h"
#include "plan/cost/op_seconds.h"
#include "plan/layout/mesh.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

struct Work {
  double compute = 0;  // device-busy time
  double waits = 0;    // link time that cannot overlap with compute
  double within = 0;   // busy time of the links within an island, and across islands
  double across = 0;
  Work& operator+=(const Work& other);
  Work operator-(const Work& other) const;
  Work operator*(double factor) const;
  // The least time from the first operation to the end of the last.
  double seconds() const;
};

// Prices operations and transfers of the ranks of any stage.
class LeastSeconds {
 public:
  // `peak`: FLOPs per second of the job's compute dtype. `is_aligned`: every stage begins at the
  // beginning of an island. Keeps a reference to `profile`.
  LeastSeconds(const v1::DeviceProfile& profile, double peak, bool is_aligned);

  // Adds the operations of a piece, except those that only the last microbatch has. `mesh` has the
  // ranks among which they communicate.
  void Add(const model::Program& program, const Mesh& mesh, const std::vector<model::Op>& ops,
           Work* work) const;
  // Adds a transfer in a group of ranks; `span` is its last rank number minus its first.
  void Add(const LinkUse& use, int64_t span, bool asynchronous, Work* work) const;
  // Seconds of the transfer on the best link that the group may have.
  double Of(const LinkUse& use, int64_t span) const;
  double memory_bytes_per_second() const { return profile_.memory_bytes_per_second(); }
  bool is_aligned() const { return is_aligned_; }

 private:
  const v1::DeviceProfile& profile_;
  const ComputeSeconds compute_;
  const bool is_aligned_;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_WORK_H_
