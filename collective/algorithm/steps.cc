#include "collective/algorithm/steps.h"

#include <fmt/format.h>

#include <iterator>

namespace troupe {

std::string ToString(const StepList& list) {
  std::string text;
  auto out = std::back_inserter(text);
  for (size_t i = 0; i < list.steps.size(); ++i) {
    const Step& step = list.steps[i];
    fmt::format_to(out, "{}:", i);
    if (step.send_to != kNobody) {
      fmt::format_to(out, " send {} [{},{})", step.send_to, step.send.first, step.send.last);
    }
    if (step.receive_from != kNobody) {
      fmt::format_to(out, " receive {} [{},{})", step.receive_from, step.receive.first,
                     step.receive.last);
    }
    fmt::format_to(out, "{}\n", step.reduce ? " reduce" : "");
  }
  return text;
}

}  // namespace troupe
