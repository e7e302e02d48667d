#include "cli/help/nearest_command.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/text/edit_distance.h"

namespace troupe {
namespace {

// Collects the names that are nearest to what was typed. Of equally near ones, those of the higher
// rank count.
class Nearest {
 public:
  void Add(std::string_view typed, std::string_view known, int rank, const std::string& name) {
    const size_t distance = EditDistance(typed, known);
    if (distance > std::max<size_t>(1, typed.size() / 3)) return;
    const std::pair order(distance, -rank);
    if (order > least_) return;
    if (order < least_) names_.clear();
    least_ = order;
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  std::pair<size_t, int> least_ = {std::numeric_limits<size_t>::max(), 0};
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> NearestCommands(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& names) {
  const std::string& first = arguments[0];
  const bool has_two = arguments.size() > 1 && !arguments[1].starts_with('-');
  Nearest commands, groups;
  for (const std::string& name : names) {
    const size_t space = name.find(' ');
    if (space == std::string::npos) {
      commands.Add(first, name, 1, name);
      continue;
    }
    if (has_two) commands.Add(first + " " + arguments[1], name, 2, name);
    commands.Add(first, name.substr(space + 1), 0, name);
    groups.Add(first, name.substr(0, space), 0, name.substr(0, space));
  }
  return commands.names().empty() ? groups.names() : commands.names();
}

}  // namespace troupe
