#include "cli/compile/compile_plan.h"

namespace troupe {

Status CompilePlan(const v1::JobSpec&, const std::function<void(const std::string&)>&, v1::Plan*) {
  return Unimplemented(
      "this build has no XLA, which --compile needs: the header of its plugins was missing when it "
      "was configured");
}

}  // namespace troupe
