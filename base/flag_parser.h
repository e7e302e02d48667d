// Parses the flags and arguments of a program, or of one command of a program, and formats its
// `--help` and its manual page. Each flag is declared once, with its variable, range and help text.
// `--flag value` and `--flag=value` are equivalent; `--` ends the flags.
#ifndef TROUPE_BASE_FLAG_PARSER_H_
#define TROUPE_BASE_FLAG_PARSER_H_

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace troupe {

struct Flag {
  std::string name;   // "--workers"
  std::string value;  // name of its value in the help text, "N"; empty: the flag has no value
  std::string help;   // with the unit of the value; empty: the help text leaves the flag out
  bool repeated = false;
  bool required = false;           // shown in the help text
  std::vector<std::string> words;  // values that a shell completes; empty: any
};

// The numbers from `least` to `most`.
template <typename Number>
struct NumberRange {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
};

// As NumberRange::least: every positive number.
inline constexpr double kAboveZero = std::numeric_limits<double>::denorm_min();

// Parses the whole of `text`, a decimal number. INVALID_ARGUMENT names flag, text and range if it
// is not a number of the range. Number: int, int64_t, uint64_t or double.
template <typename Number>
StatusOr<Number> ParseNumber(std::string_view flag, std::string_view text,
                             NumberRange<std::type_identity_t<Number>> range);

// INVALID_ARGUMENT, with `flag` and `text`, unless `text` is HOST:PORT with a port from
// `least_port` to 65535. The host may be empty, a name, an IPv4 address or [an IPv6 address].
Status CheckHostPort(std::string_view flag, std::string_view text, int least_port);

// INVALID_ARGUMENT, with `what` and the fault, if `text` cannot be a path or a name: TextFault.
// Every argument of a program passes it, before anything is started.
Status CheckText(std::string_view what, std::string_view text);

// Whether a value with this name in the help text, such as "DIR" or "JOB.yaml", is a path.
bool NamesPath(std::string_view value);

// The value of a variable of the environment; absent if it is not set or empty. INVALID_ARGUMENT of
// CheckText.
StatusOr<std::optional<std::string>> TextFromEnvironment(const char* name);

// The version of the project, "1.2.3", which --version prints.
extern const char* const kVersion;

// Not thread-safe.
class FlagParser {
 public:
  struct Program {
    std::string name;     // as the user types it: "troupe-worker", "troupe checkpoints list"
    std::string usage;    // one line for each form, without "usage:"
    std::string summary;  // first paragraph of the help text
    std::string footer;   // its last paragraph
    // Returns what to append to the error that a flag is unknown; if this is empty, or returns an
    // empty text, that names --help.
    std::function<std::string(const std::string& flag)> unknown_flag_hint;
  };

  explicit FlagParser(Program program);
  ~FlagParser();
  FlagParser(const FlagParser&) = delete;
  FlagParser& operator=(const FlagParser&) = delete;

  // These declare a flag that sets a variable, whose value at the time of the call is the default.
  // The help text states the default unless it is empty. The variables must outlive Parse.
  void AddText(const Flag& flag, std::string* text);
  void AddWord(const Flag& flag, const std::vector<std::string>& words, std::string* word);
  template <typename Number>
  void AddNumber(const Flag& flag, NumberRange<std::type_identity_t<Number>> range, Number* number);
  template <typename Number>
  void AddOptionalNumber(const Flag& flag, NumberRange<std::type_identity_t<Number>> range,
                         std::optional<Number>* number);
  void AddSwitch(const Flag& flag, bool* given);
  // Parse calls `parse` with each value of the flag, or with "" if the flag has no value, and
  // returns its first error.
  void AddParsed(const Flag& flag, std::function<Status(const std::string& value)> parse);

  // Declares arguments that are not flags, at least `least` and at most `most`.
  void AddArguments(int least, int most, std::vector<std::string>* arguments);

  // Sets the variables. INVALID_ARGUMENT names an argument that CheckText refuses, an unknown flag,
  // a flag that lacks its value or is given twice, a value outside its range, a path or an argument
  // that HomePathFault refuses, or a required flag that is absent; or it states the usage, if the
  // number of arguments is wrong. REQUIRES: called once.
  Status Parse(const std::vector<std::string>& arguments);

  // Parses the arguments of main() and then calls `check`, which tests relations among flags.
  // Returns the exit code if the program ends here: 0 after it has printed the help text, for
  // --manual its manual page or, for --version, its name and version; 2 after it has printed an
  // error.
  std::optional<int> ParseMain(int argc, char** argv, const std::function<Status()>& check = {});

  bool wants_help() const { return wants_help_; }
  std::string Help() const;
  // Returns the manual page, in roff.
  std::string Manual() const;
  // Returns the flags that were declared, in order, with their defaults in `help`.
  const std::vector<Flag>& flags() const { return flags_; }

 private:
  class Library;  // keeps its large headers out of this one

  const Program program_;
  const std::unique_ptr<Library> library_;
  std::vector<Flag> flags_;
  std::vector<std::string>* arguments_ = nullptr;
  int least_arguments_ = 0;
  int most_arguments_ = 0;
  bool wants_help_ = false;
};

}  // namespace troupe

#endif  // TROUPE_BASE_FLAG_PARSER_H_
