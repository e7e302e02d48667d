#include "plan/job/job_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/text/home_path.h"
#include "base/text/utf8.h"
#include "plan/job/key_schema.h"
#include "plan/job/path_hints.h"
#include "plan/job/unknown_key.h"
#include "plan/job/violation.h"
#include "plan/job/yaml_document.h"

namespace troupe {
namespace {

constexpr std::string_view kNoValue = "none";  // KeyOptions.absent: the key has no default
constexpr std::string_view kMergeKey = "<<";
constexpr int kMostHints = 100;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

std::string Join(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : fmt::format("{}.{}", prefix, key);
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
  // `root`: the message type in which a key for an unknown one is searched. The places of the keys
  // that are read replace earlier ones in `places`.
  Reader(const Descriptor* root, const YamlSource& source, KeyPlaces* places,
         Violations* violations)
      : root_(root), source_(source), places_(places), violations_(violations) {}

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
        AddAt(PlaceIn(source_, entry.first.Mark()), prefix, "has a key that is not a text");
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const std::string path = Join(prefix, key);
      const std::string place = PlaceIn(source_, entry.first.Mark());
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(key);
      if (key == kMergeKey) {
        AddAt(place, path, "is a merge key of YAML, which is not read: state the keys themselves");
      } else if (field == nullptr) {
        AddAt(place, path, "is an unknown key" + HintFor(path));
      } else if (!seen.insert(key).second) {
        AddAt(place, path, "is a duplicate key");
      } else {
        places_->insert_or_assign(path, place);
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
    // An empty list of a job is not distinguished from an absent key, by a resume either. An
    // override may clear the list of a file.
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
    ForgetEntries(path);
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
  // Returns UnknownKeyText for the first unknown keys; a search for each of many takes long.
  std::string HintFor(const std::string& path) {
    return ++unknown_keys_ <= kMostHints ? UnknownKeyText(*root_, path) : "";
  }

  // Adds a violation at the place of the key `field`, or of `node` if that is no key.
  template <typename... Args>
  void Add(const YAML::Node& node, const std::string& field, fmt::format_string<Args...> format,
           Args&&... args) {
    const auto key = places_->find(field);
    AddAt(key != places_->end() ? key->second : PlaceIn(source_, node.Mark()), field,
          fmt::format(format, std::forward<Args>(args)...));
  }

  void AddAt(const std::string& place, const std::string& field, std::string_view description) {
    violations_->Add(field, "{} ({})", description, place);
  }

  // Removes the places of the keys in the entries of the list `path`.
  void ForgetEntries(const std::string& path) {
    const std::string begin = path + '[', end = path + char('[' + 1);
    places_->erase(places_->lower_bound(begin), places_->lower_bound(end));
  }

  // Whether the scalar may be the value of the text `field`; if not, adds a violation.
  bool IsText(const YAML::Node& node, const std::string& path, const FieldDescriptor& field) {
    const std::string& text = node.Scalar();
    const size_t at = WellFormedPrefix(text);
    if (at < text.size()) {
      Add(node, path, "is \"{}\", which is not UTF-8: its byte {} is \\x{:02x}", text.substr(0, 80),
          at + 1, static_cast<unsigned char>(text[at]));
      return false;
    }
    const std::string fault = KeyOptionsOf(field).path() ? HomePathFault(text) : "";
    if (!fault.empty()) Add(node, path, "{}", fault);
    return fault.empty();
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
        if (IsText(node, path, *field)) put(&Reflection::SetString, &Reflection::AddString, text);
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

  const Descriptor* const root_;
  const YamlSource source_;
  KeyPlaces* const places_;
  Violations* const violations_;
  int unknown_keys_ = 0;
};

// Converts the exceptions of yaml-cpp to a Status; our code does not throw.
Status Guarded(const YamlSource& source, const auto& read) {
  try {
    read();
  } catch (const std::exception& error) {
    return InvalidArgument("{}: {}", source.name, error.what());
  }
  return OkStatus();
}

StatusOr<YAML::Node> LoadKeys(std::string_view text, const YamlSource& source) {
  if (text.size() > kMaxJobFileBytes) {
    return InvalidArgument("{}: has {} bytes; a file of keys has at most {}", source.name,
                           text.size(), kMaxJobFileBytes);
  }
  return LoadYaml(text, source);
}

Status ReadRoot(const YAML::Node& root, const YamlSource& source, ProtoMessage* message,
                KeyPlaces* places) {
  Violations violations;
  TROUPE_RETURN_IF_ERROR(Guarded(source, [&] {
    Reader(message->GetDescriptor(), source, places, &violations).ReadMapping(root, "", message);
  }));
  return violations.ToStatus();
}

// The field of a job at a dotted path, and the message that has it; null if there is none, or if
// the path leads through a list.
struct FieldOfJob {
  const FieldDescriptor* field = nullptr;
  ProtoMessage* message = nullptr;
};

// Makes the messages along the path.
FieldOfJob FindField(const std::string& path, v1::JobSpec* spec) {
  FieldOfJob found{.message = spec};
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    if (const FieldDescriptor* const section = found.field; section != nullptr) {
      if (section->is_repeated() || section->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
        return {};
      found.message = found.message->GetReflection()->MutableMessage(found.message, section);
    }
    found.field = found.message->GetDescriptor()->FindFieldByName(path.substr(begin, end - begin));
    if (found.field == nullptr) return {};
    begin = end + 1;
  }
  return found;
}

}  // namespace

StatusOr<std::string> ReadKeys(const std::string& path) {
  PosixFileSystem files;
  StatusOr<std::string> text = ReadFile(files, path, kMaxJobFileBytes, SymbolicLinks::kFollow);
  if (!text.ok()) return InvalidArgument("{}", Message(text.status()));
  return text;
}

Status ParseKeys(std::string_view text, std::string_view file_name, ProtoMessage* message) {
  const YamlSource source{.name = std::string(file_name)};
  TROUPE_ASSIGN_OR_RETURN(const YAML::Node root, LoadKeys(text, source));
  KeyPlaces places;
  return ReadRoot(root, source, message, &places);
}

StatusOr<v1::JobSpec> ParseJobFile(std::string_view text, std::string_view file_name,
                                   KeyPlaces* places) {
  const YamlSource source{.name = std::string(file_name)};
  TROUPE_ASSIGN_OR_RETURN(const YAML::Node root, LoadKeys(text, source));
  if (root.IsNull()) {
    return InvalidArgument("{}: has no keys; `troupe keys` lists those of a job file", file_name);
  }
  v1::JobSpec spec;
  KeyPlaces unused;
  TROUPE_RETURN_IF_ERROR(ReadRoot(root, source, &spec, places != nullptr ? places : &unused));
  return spec;
}

Status ApplyOverride(std::string_view key_and_value, v1::JobSpec* spec, KeyPlaces* places) {
  const size_t equals = key_and_value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidArgument("--set {}: must have the form key=value", key_and_value);
  }
  const std::string path(key_and_value.substr(0, equals));
  const YamlSource source{.name = fmt::format("--set {}", path), .has_lines = false};
  const FieldOfJob found = FindField(path, spec);
  if (found.field == nullptr) {
    return RefuseField(StatusCode::kInvalidArgument, path, "is an unknown key{} ({})",
                       UnknownKeyText(*v1::JobSpec::descriptor(), path), source.name);
  }
  TROUPE_ASSIGN_OR_RETURN(const YAML::Node node,
                          LoadYaml(key_and_value.substr(equals + 1), source));
  KeyPlaces unused;
  KeyPlaces* const stated = places != nullptr ? places : &unused;
  stated->insert_or_assign(path, source.name);
  Violations violations;
  TROUPE_RETURN_IF_ERROR(Guarded(source, [&] {
    Reader(spec->GetDescriptor(), source, stated, &violations)
        .ReadField(node, path, found.field, found.message);
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

StatusOr<LoadedJob> ReadJob(const JobText& file, const std::vector<std::string>& overrides) {
  LoadedJob job{.folder = file.folder};
  TROUPE_ASSIGN_OR_RETURN(job.spec, ParseJobFile(file.text, file.name, &job.places));
  job.places.emplace("", file.name);
  for (const std::string& override : overrides) {
    TROUPE_RETURN_IF_ERROR(ApplyOverride(override, &job.spec, &job.places));
  }
  TROUPE_RETURN_IF_ERROR(CheckText("folder of the job file", job.folder));
  if (!job.spec.checkpoint().has_folder()) {
    job.spec.mutable_checkpoint()->set_folder("checkpoints");
  }
  ResolvePaths(job.folder, &job.spec);
  return job;
}

StatusOr<LoadedJob> LoadJobFile(const std::string& path,
                                const std::vector<std::string>& overrides) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("open {}", path));
  if (std::filesystem::is_directory(absolute, error)) {
    return InvalidArgument("{}: is a folder, not a job file", path);
  }
  const std::string hint = JobFileHint(path);
  if (!hint.empty() && !std::filesystem::exists(absolute, error)) {
    return InvalidArgument("{}: there is no such file{}", path, hint);
  }
  TROUPE_ASSIGN_OR_RETURN(std::string text, ReadKeys(path));
  return ReadJob({std::move(text), path, absolute.parent_path().string()}, overrides);
}

}  // namespace troupe
