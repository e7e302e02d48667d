#include "plan/job/key_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

// The enum of an enumerated key; null for any other key.
const EnumDescriptor* EnumOf(const FieldDescriptor& field) {
  const std::string& name = KeyOptionsOf(field).words();
  if (name.empty()) return nullptr;
  const EnumDescriptor* const type = field.file()->FindEnumTypeByName(name);
  TROUPE_CHECK(type != nullptr, "{}: {} is no enum", field.full_name(), name);
  return type;
}

// The length of "DECAY_TYPE_" for DecayType.
size_t PrefixLength(const std::string& type_name) {
  const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
  return type_name.size() + static_cast<size_t>(std::ranges::count_if(type_name, is_upper));
}

std::string BoundText(double bound) {
  const auto whole = static_cast<uint64_t>(bound);
  if (whole >= 1 << 16 && std::has_single_bit(whole)) {
    return fmt::format("2^{}", std::countr_zero(whole));
  }
  return fmt::format("{}", bound);
}

}  // namespace

const FieldDescriptor& KeyField(std::string_view path) {
  const Descriptor* message = v1::JobSpec::descriptor();
  const FieldDescriptor* field = nullptr;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    field = message == nullptr
                ? nullptr
                : message->FindFieldByName(std::string(path.substr(begin, end - begin)));
    TROUPE_CHECK(field != nullptr, "a job has no key {}", path);
    message = field->message_type();
    begin = end + 1;
  }
  return *field;
}

const v1::KeyOptions& KeyOptionsOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::key);
}

double DefaultNumber(std::string_view path) {
  const std::string& text = KeyOptionsOf(KeyField(path)).default_();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  TROUPE_CHECK(error == std::errc() && end == text.data() + text.size(),
               "the default of {} is \"{}\", not a number", path, text);
  return number;
}

std::string WordOf(const EnumValueDescriptor& value) {
  std::string word = value.name().substr(PrefixLength(value.type()->name()));
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

std::vector<std::string> WordsOf(const FieldDescriptor& field) {
  std::vector<std::string> words;
  const EnumDescriptor* const type = EnumOf(field);
  for (int i = 0; type != nullptr && i < type->value_count(); ++i)
    words.push_back(WordOf(*type->value(i)));
  return words;
}

std::optional<int> FindWordIn(const EnumDescriptor& type, std::string_view word) {
  // Searches compare many words, so none is built.
  const auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  const size_t prefix = PrefixLength(type.name());
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string_view name = type.value(i)->name();
    if (std::ranges::equal(name.substr(prefix), word, {}, lower)) return type.value(i)->number();
  }
  return std::nullopt;
}

bool IsInRange(const v1::KeyOptions& options, double value) {
  const bool has_range =
      options.has_min() || options.has_above() || options.has_max() || options.has_below();
  if (has_range && !std::isfinite(value)) return false;
  return !(options.has_min() && value < options.min()) &&
         !(options.has_above() && value <= options.above()) &&
         !(options.has_max() && value > options.max()) &&
         !(options.has_below() && value >= options.below());
}

std::string RangeText(const v1::KeyOptions& options) {
  const bool has_lower = options.has_min() || options.has_above();
  const bool has_upper = options.has_max() || options.has_below();
  if (!has_lower && !has_upper) return "";
  const std::string lower = options.has_min()     ? "[" + BoundText(options.min())
                            : options.has_above() ? "(" + BoundText(options.above())
                                                  : "(-∞";
  const std::string upper = options.has_max()     ? BoundText(options.max()) + "]"
                            : options.has_below() ? BoundText(options.below()) + ")"
                                                  : "∞)";
  return lower + ", " + upper;
}

}  // namespace troupe
