// Accesses the fields of a message by dotted path, such as "training.float8.recipe". Pure.
#ifndef TROUPE_PLAN_JOB_KEY_PATH_H_
#define TROUPE_PLAN_JOB_KEY_PATH_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace troupe {

// Whether the field at `path` is present (repeated: not empty), in any element of the repeated
// messages along the path. REQUIRES: the message type has the path.
bool HasKey(const google::protobuf::Message& message, std::string_view path);

// Clears the field at `path`, in every element of the repeated messages along the path. REQUIRES:
// as HasKey.
void ClearKey(std::string_view path, google::protobuf::Message* message);

// Clears every submessage field below `message` that has no field set.
void ClearEmptyMessages(google::protobuf::Message* message);

// The value of the field at `path` as text: "0.1", "\"wsd\"", "[1, 2]"; "absent". With several
// messages along the path, the values of all of them, separated by commas. REQUIRES: as HasKey.
std::string KeyText(const google::protobuf::Message& message, std::string_view path);

// The same as KeyText for a path without repeated fields, but without the quotes of a text.
// REQUIRES: HasKey(message, path).
std::string PlainKeyText(const google::protobuf::Message& message, std::string_view path);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_PATH_H_
