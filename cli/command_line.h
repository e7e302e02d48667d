// The arguments after `troupe COMMAND`: flags and positional arguments, checked against the
// command's own list. Pure.
#ifndef TROUPE_CLI_COMMAND_LINE_H_
#define TROUPE_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flag_parser.h"
#include "base/status.h"
#include "cli/exit_code.h"

namespace troupe {

class CommandLine {
 public:
  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(const std::string& flag) const { return flags_.contains(flag); }
  // Returns the value of a flag that is given at most once.
  std::optional<std::string> Get(const std::string& flag) const;
  std::string GetOr(const std::string& flag, const std::string& otherwise) const;
  std::vector<std::string> GetAll(const std::string& flag) const;
  // INVALID_ARGUMENT names flag, value and range unless it is an integer within [least, most].
  StatusOr<int64_t> Integer(const std::string& flag, int64_t otherwise, int64_t least,
                            int64_t most) const;
  StatusOr<double> Number(const std::string& flag, double otherwise,
                          NumberRange<double> range) const;
  bool wants_json() const { return GetOr("-o", "text") == "json"; }
  // If set, the rest may be incomplete.
  const std::optional<std::string>& help() const { return help_; }

 private:
  friend struct Command;
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> flags_;
  std::optional<std::string> help_;
};

// The part of a cluster that a command needs.
enum class ClusterUse {
  kCoordinator,  // it calls the coordinator, which --coordinator or --data-dir may name
  kFolder,       // it works on the local cluster in --data-dir
  kNone,
};

struct Command {
  std::string name;         // "checkpoints list"
  std::string positionals;  // "JOB", for help
  int least_positionals = 0;
  int most_positionals = 0;
  std::string summary;      // one sentence
  std::vector<Flag> flags;  // in addition to -o and the flags of its cluster use
  ClusterUse cluster = ClusterUse::kCoordinator;
  StatusOr<ExitCode> (*run)(const CommandLine& line) = nullptr;

  // Returns the errors of FlagParser::Parse.
  StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments) const;
};

}  // namespace troupe

#endif  // TROUPE_CLI_COMMAND_LINE_H_
