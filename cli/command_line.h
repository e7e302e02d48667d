// What a user typed after `troupe COMMAND`: flags and positional arguments, read against the command's own list.
// `--flag value` and `--flag=value` are the same; `--` ends the flags. Pure.
#ifndef TROUPE_CLI_COMMAND_LINE_H_
#define TROUPE_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/exit_code.h"

namespace troupe {

struct Flag {
  std::string name;   // "--workers"
  std::string value;  // what its value is called in help, "N"; empty: the flag has none
  std::string help;
  bool repeated = false;
};

class CommandLine {
 public:
  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(const std::string& flag) const { return flags_.contains(flag); }
  // The value of a flag given at most once.
  std::optional<std::string> Get(const std::string& flag) const;
  std::string GetOr(const std::string& flag, const std::string& otherwise) const;
  std::vector<std::string> GetAll(const std::string& flag) const;
  // INVALID_ARGUMENT naming flag and value unless it is a number within [least, most].
  StatusOr<int64_t> Integer(const std::string& flag, int64_t otherwise, int64_t least,
                            int64_t most) const;
  StatusOr<double> PositiveNumber(const std::string& flag, double otherwise) const;
  bool wants_json() const { return GetOr("-o", "text") == "json"; }

 private:
  friend struct Command;
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> flags_;
};

struct Command {
  std::string name;         // "checkpoints list"
  std::string positionals;  // "JOB", for help
  int least_positionals = 0;
  int most_positionals = 0;
  std::string summary;      // one sentence
  std::vector<Flag> flags;  // beside those that every command has
  StatusOr<ExitCode> (*run)(const CommandLine& line) = nullptr;

  // INVALID_ARGUMENT naming an unknown flag, one without its value or given twice, or a wrong number of arguments.
  StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments) const;
  std::string Usage() const;  // "troupe checkpoints list JOB"
  std::string Help() const;
};

}  // namespace troupe

#endif  // TROUPE_CLI_COMMAND_LINE_H_
