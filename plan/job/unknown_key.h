// The key that may have been meant by one that does not exist: meaning before spelling. Pure.
#ifndef TROUPE_PLAN_JOB_UNKNOWN_KEY_H_
#define TROUPE_PLAN_JOB_UNKNOWN_KEY_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>

namespace troupe {

// Returns the text to append to the error that the message type `root` has no key `path`. For a job
// and a name of another tool, that is ForeignKeyText, or NearForeignKeyText unless a key in another
// section has the last word; else "; the nearest known key is KEY", with the key below `root` that
// is nearest by its last word, so that a key in the wrong section is found too, and then by its
// path. Empty if more than a third of the letters of that word differ.
std::string UnknownKeyText(const google::protobuf::Descriptor& root, std::string_view path);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_UNKNOWN_KEY_H_
