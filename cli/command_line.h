// The arguments after `troupe COMMAND`: flags and positional arguments, checked against the
// command's own list. Each flag is declared once, as a constant: the command lists it, and the
// command's code reads its value through it. Pure.
#ifndef TROUPE_CLI_COMMAND_LINE_H_
#define TROUPE_CLI_COMMAND_LINE_H_

#include <any>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/flag_parser.h"
#include "base/status.h"
#include "cli/exit_code.h"

namespace troupe {

// A flag that is read as a `Value`. Its address identifies it, so it has static storage.
template <typename Value>
struct CommandFlag {
  const char* name;   // "--workers"
  const char* value;  // name of its value in the help text, "N"; empty for a switch
  const char* help;
  bool required = false;
  const char* words = "";  // values that a shell completes, between spaces or commas; empty: any
};

using SwitchFlag = CommandFlag<bool>;  // true if it is given
using TextFlag = CommandFlag<std::optional<std::string>>;
using RepeatedFlag = CommandFlag<std::vector<std::string>>;  // all values, in order

// Numbers outside of `range` are refused.
template <typename Number>
struct NumberFlag : CommandFlag<std::optional<Number>> {
  NumberRange<Number> range;
};

// An entry of a command's list.
using AnyFlag =
    std::variant<const SwitchFlag*, const TextFlag*, const RepeatedFlag*, const NumberFlag<int>*,
                 const NumberFlag<int64_t>*, const NumberFlag<double>*>;

class CommandLine {
 public:
  const std::vector<std::string>& positional() const { return positional_; }
  // Returns the value of a flag, which is empty if the flag is not given. REQUIRES: the command
  // lists the flag.
  template <typename Value>
  const Value& Get(const CommandFlag<Value>& flag) const {
    const auto entry = values_.find(&flag);
    TROUPE_CHECK(entry != values_.end(), "the command does not list {}", flag.name);
    return *std::any_cast<Value>(&entry->second);
  }
  bool wants_json() const { return format_ == "json"; }
  // If set, the rest may be incomplete.
  const std::optional<std::string>& help() const { return help_; }

 private:
  friend struct Command;

  template <typename Value>
  Value* Add(const CommandFlag<Value>& flag) {
    return &values_[&flag].template emplace<Value>();
  }

  std::vector<std::string> positional_;
  std::map<const void*, std::any> values_;  // by address of the flag
  std::string format_ = "text";
  std::optional<std::string> help_;
};

// The part of a cluster that a command needs.
enum class ClusterUse {
  // It calls the coordinator: kCoordinatorFlag, kLocalClusterFlag, kTlsDirFlag and kTokenFileFlag
  // are in its list too.
  kCoordinator,
  kFolder,  // it works on a local cluster, whose folder it takes by a flag of its own
  kNone,    // it accepts the flags of kCoordinator that it does not list, and ignores them
};

inline constexpr TextFlag kCoordinatorFlag{
    "--coordinator", "HOST:PORT",
    "the coordinator (default: TROUPE_COORDINATOR, else the newest local cluster)"};
inline constexpr TextFlag kLocalClusterFlag{
    "--data-dir", "DIR", "the coordinator of the local cluster in DIR (`troupe up`)"};
inline constexpr TextFlag kTlsDirFlag{
    "--tls-dir", "DIR",
    "directory with ca.pem, cert.pem and key.pem, for a coordinator with TLS (default: "
    "TROUPE_TLS_DIR, unless the coordinator is that of a local cluster)"};
inline constexpr TextFlag kTokenFileFlag{
    "--token-file", "FILE",
    "file with a user's token, used instead of cert.pem and key.pem; only its owner may be able to "
    "read it (default: TROUPE_TOKEN_FILE, unless the coordinator is that of a local cluster)"};

struct Command {
  std::string name;         // "checkpoints list"
  std::string positionals;  // "JOB", for help
  int least_positionals = 0;
  int most_positionals = 0;
  std::string summary;         // one sentence
  std::vector<AnyFlag> flags;  // in addition to -o and the flags of its cluster use
  ClusterUse cluster = ClusterUse::kCoordinator;
  StatusOr<ExitCode> (*run)(const CommandLine& line) = nullptr;

  // Returns the errors of FlagParser::Parse, and INVALID_ARGUMENT for an empty path or argument,
  // unless the usage has that in brackets.
  StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments) const;
  // Returns the flags that the help text has, with --help and -o.
  std::vector<Flag> ShownFlags() const;
  // Returns the manual page, in roff.
  std::string Manual() const;

 private:
  void Declare(FlagParser* parser, CommandLine* line) const;
};

// The flags of ClusterUse::kCoordinator.
std::vector<AnyFlag> CoordinatorFlags();

// The columns of the lines of help texts.
inline constexpr size_t kHelpColumns = 80;

// Returns help for each command: its name, padded to the longest one, and its summary, in lines of
// at most kHelpColumns.
std::string CommandTable(const std::vector<Command>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_COMMAND_LINE_H_
