// Fields of a message by their dotted path, "training.float8.recipe". Pure.
#ifndef TROUPE_PLAN_KEY_PATH_H_
#define TROUPE_PLAN_KEY_PATH_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace troupe {

// Whether the field at `path` is present (repeated: not empty), in any element of the repeated
// messages on the way. REQUIRES: the message type has the path.
bool HasKey(const google::protobuf::Message& message, std::string_view path);

// Clears it, in every element of the repeated messages on the way. REQUIRES: as HasKey.
void ClearKey(std::string_view path, google::protobuf::Message* message);

// Clears every field below `message` that is a message without a field of its own.
void ClearEmptyMessages(google::protobuf::Message* message);

// Its value as text: "0.1", "\"wsd\"", "[1, 2]"; "absent". Of several messages on the way each one's,
// with commas between. REQUIRES: as HasKey.
std::string KeyText(const google::protobuf::Message& message, std::string_view path);

}  // namespace troupe

#endif  // TROUPE_PLAN_KEY_PATH_H_
