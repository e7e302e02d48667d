// Converts protobuf messages to JSON by reflection, with the names of their fields. Pure.
#ifndef TROUPE_PLAN_JOB_MESSAGE_JSON_H_
#define TROUPE_PLAN_JOB_MESSAGE_JSON_H_

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace google::protobuf {
class Message;
class EnumDescriptor;
}  // namespace google::protobuf

namespace troupe {

using Json = nlohmann::ordered_json;

// Returns an object with the given fields, in that order. A message within is an object with all of
// its fields, in the order of their declaration, and has their defaults if it is absent. A scalar
// that is declared `optional` is null if it is absent. A value of an enumeration is its name as
// EnumText has it.
// REQUIRES: the message has these fields, none of them a map, a `float` or `bytes`.
Json MessageToJson(const google::protobuf::Message& message,
                   std::initializer_list<const char*> fields);

// The same with all fields, in the order of their declaration.
Json MessageToJson(const google::protobuf::Message& message);

// Returns "RUNNING" for JOB_STATE_RUNNING: the name without the prefix of JOB_STATE_UNSPECIFIED,
// the value 0, if it has that prefix. Empty if there is no such value.
std::string EnumText(const google::protobuf::EnumDescriptor& type, int value);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_MESSAGE_JSON_H_
