// Fills absent job keys with the defaults that their option `key` states. Pure.
#ifndef TROUPE_PLAN_JOB_FILL_DEFAULTS_H_
#define TROUPE_PLAN_JOB_FILL_DEFAULTS_H_

#include <google/protobuf/message.h>

#include <functional>

namespace troupe {

// Whether a field gets its default. For a message it decides about everything below it.
using AppliesTo = std::function<bool(const google::protobuf::FieldDescriptor& field)>;

// Sets every absent field of `message`, and of the messages below it, whose `default` is a value.
// Creates absent messages whose `default` is "{}", and no others.
void FillDefaults(const AppliesTo& applies, google::protobuf::Message* message);

// Sets every absent field of `root`, and of the messages present below it, that has a `default_key`
// to the value of that key. Keys whose source is absent stay absent.
void CopyDefaults(const AppliesTo& applies, google::protobuf::Message* root);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_FILL_DEFAULTS_H_
