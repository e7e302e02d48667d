#include "plan/job/validate_keys.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "base/text/printable.h"
#include "plan/job/key_blocks.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

constexpr size_t kShownBytes = 200;  // at most, of a pattern in a violation

// Walks over the messages of a spec.
class KeyValidator {
 public:
  KeyValidator(const v1::JobSpec& spec, JobPurpose purpose, Violations* violations)
      : spec_(spec), purpose_(purpose), violations_(violations) {}

  // `prefix`: the path of `message`, with a dot at its end.
  void CheckMessage(const ProtoMessage& message, const std::string& prefix) {
    const auto* const reflection = message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = message.GetDescriptor()->field(i);
      const std::string path = prefix + field->name();
      const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field->is_repeated()) {
        const int size = reflection->FieldSize(message, field);
        const bool fits = HasRoomFor(size, *field, path);
        for (int k = 0; is_message && fits && k < size; ++k) {
          CheckMessage(reflection->GetRepeatedMessage(message, field, k),
                       fmt::format("{}[{}].", path, k));
        }
      } else if (is_message) {
        if (reflection->HasField(message, field)) {
          CheckMessage(reflection->GetMessage(message, field), path + ".");
        }
      } else {
        CheckKey(message, *field, path);
      }
    }
  }

 private:
  void CheckKey(const ProtoMessage& message, const FieldDescriptor& field,
                const std::string& path) {
    const v1::KeyOptions& options = KeyOptionsOf(field);
    if (!message.GetReflection()->HasField(message, &field)) {
      if (options.required()) violations_->Add(path, "is required");
      return;
    }
    if (spec_.model().has_pattern() && !HasBlockThatReads(options, spec_.model().pattern())) {
      violations_->Add(path, "is set, but model.pattern = \"{}\" has no block {}",
                       spec_.model().pattern().substr(0, kShownBytes), BlocksThatRead(options));
      return;
    }
    if (HasValueOfDefaultKey(options, path)) return;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        CheckText(message.GetReflection()->GetString(message, &field), field, path);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        CheckRange(message.GetReflection()->GetDouble(message, &field), options, path);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        CheckRange(message.GetReflection()->GetInt64(message, &field), options, path);
        break;
      default:  // no other type has a range
        break;
    }
  }

  bool HasRoomFor(int size, const FieldDescriptor& field, const std::string& path) {
    const v1::KeyOptions& options = KeyOptionsOf(field);
    if (!options.has_max() || size <= options.max()) return true;
    violations_->Add(path, "has {} entries, above the limit of {}", size, options.max());
    return false;
  }

  bool HasValueOfDefaultKey(const v1::KeyOptions& options, const std::string& path) const {
    const std::string& source = options.default_key();
    return !source.empty() && HasKey(spec_, source) &&
           PlainKeyText(spec_, source) == PlainKeyText(spec_, path);
  }

  void CheckRange(auto value, const v1::KeyOptions& options, const std::string& path) {
    if (IsInRange(options, static_cast<double>(value))) return;
    violations_->AddOutOfRange(path, value, RangeText(options));
  }

  void CheckText(const std::string& text, const FieldDescriptor& field, const std::string& path) {
    const v1::KeyOptions& options = KeyOptionsOf(field);
    if (options.required() && text.empty()) {
      violations_->Add(path, "is required");
    } else if (!options.words().empty()) {
      CheckWord(text, field, path);
    } else if (options.path()) {
      if (purpose_ == JobPurpose::kTrain && !text.empty() && text[0] != '/') {
        violations_->Add(path, "is {}, not an absolute path", text);
      }
      if (const std::string fault = TextFault(text); !fault.empty())
        violations_->Add(path, "is \"{}\", which {}", text, fault);
    }
  }

  void CheckWord(const std::string& text, const FieldDescriptor& field, const std::string& path) {
    const std::vector<std::string> words = WordsOf(field);
    if (std::ranges::count(words, text) == 0)
      violations_->AddUnknownWord(path, text, fmt::format("{}", fmt::join(words, ", ")));
  }

  const v1::JobSpec& spec_;
  const JobPurpose purpose_;
  Violations* const violations_;
};

}  // namespace

void ValidateKeys(const v1::JobSpec& spec, JobPurpose purpose, Violations* violations) {
  KeyValidator(spec, purpose, violations).CheckMessage(spec, "");
}

}  // namespace troupe
