#include "plan/job/job_file.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/text/utf8.h"
#include "plan/job/key_schema.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr std::string_view kNoValue = "none";  // KeyOptions.absent: the key has no default

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

// The number of one-letter insertions, deletions and substitutions, and swaps of neighbours, from
// `a` to `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> before;
  for (size_t i = 1; i <= a.size(); ++i) {
    const std::vector<size_t> above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
  }
  return row.back();
}

std::string Join(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
}

// Collects every key of the schema below `descriptor` as a dotted path.
void CollectKeys(const Descriptor* descriptor, const std::string& prefix,
                 std::vector<std::string>* keys) {
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string path = Join(prefix, field->name());
    keys->push_back(path);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CollectKeys(field->message_type(), path, keys);
    }
  }
}

// Returns "; the nearest known key is KEY" with the key of `root` nearest to `path`: first by the
// last word, so that a key in the wrong section is found too, then by the whole path. Returns "" if
// more than a third of the letters of that word differ.
std::string NearestKeyText(const Descriptor* root, std::string_view path) {
  std::vector<std::string> keys;
  CollectKeys(root, "", &keys);
  const auto last_word = [](std::string_view dotted) {
    return dotted.substr(dotted.rfind('.') + 1);
  };
  const auto rank = [&](std::string_view key) {
    return std::pair(EditDistance(last_word(path), last_word(key)), EditDistance(path, key));
  };
  const std::string& nearest = *std::min_element(
      keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (rank(nearest).first * 3 > last_word(path).size()) return "";
  return "; the nearest known key is " + nearest;
}

std::string_view TypeWord(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a mapping of keys";
    default:
      return "a whole number";
  }
}

std::string NodeText(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar: {
      std::string text = node.Scalar().substr(0, 80);
      return node.Tag() == "!" ? fmt::format("the text \"{}\"", text) : text;
    }
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "empty";
  }
}

// Reads a whole number with an exponent, such as 80e9.
template <typename T>
std::optional<T> ParseExponent(std::string_view text, bool* out_of_range) {
  constexpr double kExact = 9007199254740992;  // beyond it a double is not every whole number
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.find_first_of("eE") == std::string_view::npos || end != text.data() + text.size())
    return std::nullopt;
  if (error == std::errc() && value != std::trunc(value)) return std::nullopt;
  *out_of_range = error != std::errc() || std::abs(value) > kExact ||
                  value < static_cast<double>(std::numeric_limits<T>::min()) ||
                  value > static_cast<double>(std::numeric_limits<T>::max());
  if (*out_of_range) return std::nullopt;
  return static_cast<T>(value);
}

template <typename T>
std::optional<T> ParseWhole(std::string_view text, bool* out_of_range) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits_only =
      !text.empty() &&
      text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) == std::string_view::npos &&
      text != "-";
  *out_of_range = digits_only && (error == std::errc::result_out_of_range ||
                                  (text[0] == '-' && std::is_unsigned_v<T>));
  if (error != std::errc() || end != text.data() + text.size()) {
    return digits_only ? std::nullopt : ParseExponent<T>(text, out_of_range);
  }
  return value;
}

bool LooksNonFinite(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), ::tolower);
  std::string_view word = text;
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  if (word.starts_with('.')) word.remove_prefix(1);
  return word == "nan" || word == "inf" || word == "infinity";
}

// Converts YAML nodes to messages; adds errors to `violations`.
class Reader {
 public:
  // `root`: the message type in which the nearest known key is searched.
  Reader(const Descriptor* root, std::string_view source, Violations* violations)
      : root_(root), source_(source), violations_(violations) {}

  // `prefix` is the dotted path of `message`.
  void ReadMapping(const YAML::Node& node, const std::string& prefix, ProtoMessage* message) {
    if (node.IsNull()) return;  // "checkpoint:" with every key below it commented out
    if (!node.IsMap()) {
      const bool is_job = root_ == v1::JobSpec::descriptor();
      Add(node,
          !prefix.empty() ? prefix
          : is_job        ? "job"
                          : "the file",
          "is {}, not a mapping of keys", NodeText(node));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        Add(entry.first, prefix, "has a key that is not a text");
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const std::string path = Join(prefix, key);
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(key);
      if (field == nullptr) {
        Add(entry.first, path, "is an unknown key{}", NearestKeyText(root_, path));
      } else if (!seen.insert(key).second) {
        Add(entry.first, path, "is a duplicate key");
      } else {
        ReadField(entry.second, path, field, message);
      }
    }
  }

  void ReadField(const YAML::Node& node, const std::string& path, const FieldDescriptor* field,
                 ProtoMessage* message) {
    const Reflection* reflection = message->GetReflection();
    if (!field->is_repeated()) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        ReadMapping(node, path, reflection->MutableMessage(message, field));
      } else {
        ReadScalar(node, path, field, message);
      }
      return;
    }
    if (!node.IsSequence()) {
      Add(node, path, "is {}, not a list", NodeText(node));
      return;
    }
    // An empty list of a job is not told apart from an absent key, by a resume either. An override
    // may clear the list of a file.
    const bool has_texts = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool clears = !has_texts && reflection->FieldSize(*message, field) > 0;
    const bool is_job = root_ == v1::JobSpec::descriptor();
    if (node.size() == 0 && (has_texts || (is_job && !clears))) {
      const std::string& absent = KeyOptionsOf(*field).absent();
      const bool has_default = has_texts && !absent.empty() && absent != kNoValue;
      Add(node, path, "is an empty list{}",
          has_default ? ", which means its default; for a list that names nothing, state [\"\"]"
                      : "; leave the key out");
      return;
    }
    reflection->ClearField(message, field);
    for (size_t i = 0; i < node.size(); ++i) {
      const std::string element = fmt::format("{}[{}]", path, i);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        ReadMapping(node[i], element, reflection->AddMessage(message, field));
      } else {
        ReadScalar(node[i], element, field, message);
      }
    }
  }

 private:
  template <typename... Args>
  void Add(const YAML::Node& node, const std::string& field, fmt::format_string<Args...> format,
           Args&&... args) {
    std::string description = fmt::format(format, std::forward<Args>(args)...);
    const YAML::Mark mark = node.Mark();
    if (!source_.empty() && !mark.is_null()) {
      description += fmt::format(" ({}:{})", source_, mark.line + 1);
    }
    violations_->Add(field, "{}", description);
  }

  // Whether the scalar is UTF-8; if it is not, adds a violation.
  bool IsText(const YAML::Node& node, const std::string& path) {
    const std::string& text = node.Scalar();
    const size_t at = WellFormedPrefix(text);
    if (at == text.size()) return true;
    Add(node, path, "is \"{}\", which is not UTF-8: its byte {} is \\x{:02x}", text.substr(0, 80),
        at + 1, static_cast<unsigned char>(text[at]));
    return false;
  }

  void ReadScalar(const YAML::Node& node, const std::string& path, const FieldDescriptor* field,
                  ProtoMessage* message) {
    const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    // A quoted scalar is always text.
    if (!node.IsScalar() || (!is_text && node.Tag() == "!")) {
      Add(node, path, "is {}, not {}", NodeText(node), TypeWord(field));
      return;
    }
    const Reflection* reflection = message->GetReflection();
    const auto put = [&](auto set, auto add, auto value) {
      field->is_repeated() ? (reflection->*add)(message, field, value)
                           : (reflection->*set)(message, field, value);
    };
    const std::string& text = node.Scalar();
    bool out_of_range = false;
    bool good = false;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (IsText(node, path)) put(&Reflection::SetString, &Reflection::AddString, text);
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        good = text == "true" || text == "false";
        if (good) put(&Reflection::SetBool, &Reflection::AddBool, text == "true");
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double value = 0;
        std::string_view digits = text;
        if (digits.starts_with('+')) digits.remove_prefix(1);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (LooksNonFinite(text)) {
          Add(node, path, "is {}, not a finite number", text);
          return;
        }
        out_of_range = error == std::errc::result_out_of_range;
        good = error == std::errc() && end == digits.data() + digits.size();
        if (good) put(&Reflection::SetDouble, &Reflection::AddDouble, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT32:
        if (auto value = ParseWhole<int32_t>(text, &out_of_range)) {
          good = true;
          put(&Reflection::SetInt32, &Reflection::AddInt32, *value);
        }
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        if (auto value = ParseWhole<int64_t>(text, &out_of_range)) {
          good = true;
          put(&Reflection::SetInt64, &Reflection::AddInt64, *value);
        }
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        if (auto value = ParseWhole<uint64_t>(text, &out_of_range)) {
          good = true;
          put(&Reflection::SetUInt64, &Reflection::AddUInt64, *value);
        }
        break;
      default:
        break;
    }
    if (good) return;
    if (out_of_range) {
      Add(node, path, "is {}, out of the range of {}", text.substr(0, 80), field->cpp_type_name());
    } else if (LooksNonFinite(text)) {
      Add(node, path, "is {}, not a finite number", text);
    } else {
      Add(node, path, "is {}, not {}", NodeText(node), TypeWord(field));
    }
  }

  const Descriptor* root_;
  std::string source_;
  Violations* violations_;
};

// The words of yaml-cpp, or plainer ones for a bracket that is not closed.
std::string PlainYamlError(const std::string& text) {
  if (text == YAML::ErrorMsg::END_OF_MAP_FLOW) return "a { is not closed";
  if (text == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "a [ is not closed";
  return text;
}

// Converts the exceptions of yaml-cpp to a Status; our code does not throw.
StatusOr<YAML::Node> LoadYaml(std::string_view text, std::string_view source) {
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return InvalidArgument("{}: has {} YAML documents, not one", source, documents.size());
    }
    return documents.empty() ? YAML::Node() : documents[0];
  } catch (const YAML::DeepRecursion& error) {
    return InvalidArgument("{}:{}: is nested more than {} levels deep", source,
                           error.mark.is_null() ? 1 : error.mark.line + 1, error.depth() - 1);
  } catch (const YAML::Exception& error) {
    const auto lines = static_cast<int>(std::ranges::count(text, '\n')) + !text.ends_with('\n');
    // An error found at the end of the text has the line after its last.
    const int line = error.mark.is_null() ? 1 : std::min(error.mark.line + 1, std::max(lines, 1));
    return InvalidArgument("{}:{}: {}", source, line, PlainYamlError(error.msg));
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", source, error.what());
  }
}

Status Guarded(std::string_view source, const auto& read) {
  try {
    read();
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", source, error.what());
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> ReadKeys(const std::string& path) {
  PosixFileSystem files;
  StatusOr<std::string> text = ReadFile(files, path, kMaxJobFileBytes, SymbolicLinks::kFollow);
  if (!text.ok()) return InvalidArgument("{}", Message(text.status()));
  return text;
}

Status ParseKeys(std::string_view text, std::string_view file_name, ProtoMessage* message) {
  if (text.size() > kMaxJobFileBytes) {
    return InvalidArgument("{}: has {} bytes; a file of keys has at most {}", file_name,
                           text.size(), kMaxJobFileBytes);
  }
  TROUPE_ASSIGN_OR_RETURN(YAML::Node root, LoadYaml(text, file_name));
  Violations violations;
  TROUPE_RETURN_IF_ERROR(Guarded(file_name, [&] {
    Reader(message->GetDescriptor(), file_name, &violations).ReadMapping(root, "", message);
  }));
  return violations.ToStatus();
}

StatusOr<v1::JobSpec> ParseJobFile(std::string_view text, std::string_view file_name) {
  v1::JobSpec spec;
  TROUPE_RETURN_IF_ERROR(ParseKeys(text, file_name, &spec));
  return spec;
}

Status ApplyOverride(std::string_view key_and_value, v1::JobSpec* spec) {
  const size_t equals = key_and_value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidArgument("--set {}: must have the form key=value", key_and_value);
  }
  const std::string path(key_and_value.substr(0, equals));
  const std::string source = fmt::format("--set {}", path);
  Violations violations;
  ProtoMessage* message = spec;
  const FieldDescriptor* field = nullptr;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    if (field != nullptr) {
      if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        field = nullptr;
        break;
      }
      message = message->GetReflection()->MutableMessage(message, field);
    }
    field = message->GetDescriptor()->FindFieldByName(path.substr(begin, end - begin));
    if (field == nullptr) break;
    begin = end + 1;
  }
  if (field == nullptr) {
    violations.Add(path, "is an unknown key{} (--set)",
                   NearestKeyText(v1::JobSpec::descriptor(), path));
    return violations.ToStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(YAML::Node node, LoadYaml(key_and_value.substr(equals + 1), source));
  TROUPE_RETURN_IF_ERROR(Guarded(source, [&] {
    Reader(spec->GetDescriptor(), "", &violations).ReadField(node, path, field, message);
  }));
  return violations.ToStatus();
}

void ResolvePaths(std::string_view folder, ProtoMessage* message) {
  const Reflection* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_message && field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        ResolvePaths(folder, reflection->MutableRepeatedMessage(message, field, i));
      }
    } else if (is_message) {
      ResolvePaths(folder, reflection->MutableMessage(message, field));
    } else if (KeyOptionsOf(*field).path()) {
      const std::filesystem::path path = reflection->GetString(*message, field);
      if (path.empty() || path.is_absolute()) continue;
      reflection->SetString(message, field,
                            (std::filesystem::path(folder) / path).lexically_normal().string());
    }
  }
}

StatusOr<v1::JobSpec> LoadJobFile(const std::string& path,
                                  const std::vector<std::string>& overrides) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("open {}", path));
  if (std::filesystem::is_directory(absolute, error)) {
    return InvalidArgument("{}: is a folder, not a job file", path);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadKeys(path));
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, ParseJobFile(text, path));
  for (const std::string& override : overrides) {
    TROUPE_RETURN_IF_ERROR(ApplyOverride(override, &spec));
  }
  TROUPE_RETURN_IF_ERROR(CheckText("folder of the job file", absolute.parent_path().string()));
  if (!spec.checkpoint().has_folder()) spec.mutable_checkpoint()->set_folder("checkpoints");
  ResolvePaths(absolute.parent_path().string(), &spec);
  return spec;
}

}  // namespace troupe
