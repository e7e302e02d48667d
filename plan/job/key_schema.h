// The schema of the job keys: what the option `key` (proto/troupe/v1/key.proto) of a field states,
// and the words of enumerated keys. Pure.
#ifndef TROUPE_PLAN_JOB_KEY_SCHEMA_H_
#define TROUPE_PLAN_JOB_KEY_SCHEMA_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/v1/key.pb.h"

namespace troupe {

// The field of the job file at `path`, such as "parallelism.expert_dispatch". REQUIRES: the schema
// has the path.
const google::protobuf::FieldDescriptor& KeyField(std::string_view path);

// The option of a field; its default instance for a field without the option.
const v1::KeyOptions& KeyOptionsOf(const google::protobuf::FieldDescriptor& field);

// The default of the number at `path`. REQUIRES: its option `key` states a number.
double DefaultNumber(std::string_view path);

// The word for a value of an enum: "inverse_sqrt" for DECAY_TYPE_INVERSE_SQRT of DecayType.
std::string WordOf(const google::protobuf::EnumValueDescriptor& value);

// The words of an enumerated key that this build supports, in the order of its enum; empty for any
// other key.
std::vector<std::string> WordsOf(const google::protobuf::FieldDescriptor& field);

// The number of the value of `type` with this word; none for any other text.
std::optional<int> FindWordIn(const google::protobuf::EnumDescriptor& type, std::string_view word);

// The value of the enum E with this word; none for any other text.
template <typename E>
std::optional<E> FindWord(std::string_view word) {
  const auto number = FindWordIn(*google::protobuf::GetEnumDescriptor<E>(), word);
  return number ? std::optional<E>(static_cast<E>(*number)) : std::nullopt;
}

// The same, but value 0 for any other text.
template <typename E>
E DecodeWord(std::string_view word) {
  return FindWord<E>(word).value_or(E{});
}

// The word of a value of E, which DecodeWord<E> decodes again. REQUIRES: E has the value.
template <typename E>
std::string EncodeWord(E value) {
  return WordOf(*google::protobuf::GetEnumDescriptor<E>()->FindValueByNumber(value));
}

// Whether `value` is within the range that `options` states. NaN is within none.
bool IsInRange(const v1::KeyOptions& options, double value);

// The range as an interval, "[1, 64]" or "(0, ∞)"; powers of two from 2^16 are written as such.
// Empty where `options` states no range.
std::string RangeText(const v1::KeyOptions& options);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_SCHEMA_H_
