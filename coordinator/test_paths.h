// The keys of a job that are paths, found by reflection, so that a new one is tested too.
#ifndef TROUPE_COORDINATOR_TEST_PATHS_H_
#define TROUPE_COORDINATOR_TEST_PATHS_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct PathKey {
  std::string name;  // "data.blend[0].path", as refusals name it
  std::string root;  // the field of PathRoots
  std::vector<const google::protobuf::FieldDescriptor*> fields;  // from the spec to the key

  // Sets the key; a list gets another element.
  void Set(const std::string& path, v1::JobSpec* spec) const {
    google::protobuf::Message* message = spec;
    for (const auto* const field : fields) {
      const auto* const reflection = message->GetReflection();
      if (field == fields.back()) {
        reflection->SetString(message, field, path);
      } else {
        message = field->is_repeated() ? reflection->AddMessage(message, field)
                                       : reflection->MutableMessage(message, field);
      }
    }
  }
};

inline void AddPathKeys(const google::protobuf::Descriptor& type, const PathKey& above,
                        std::vector<PathKey>* keys) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    PathKey key = above;
    key.name += (above.name.empty() ? "" : ".") + field.name() + (field.is_repeated() ? "[0]" : "");
    key.fields.push_back(&field);
    if (field.message_type() != nullptr) {
      AddPathKeys(*field.message_type(), key, keys);
    } else if (KeyOptionsOf(field).path()) {
      key.root = KeyOptionsOf(field).root();
      keys->push_back(std::move(key));
    }
  }
}

inline std::vector<PathKey> PathKeys() {
  std::vector<PathKey> keys;
  AddPathKeys(*v1::JobSpec::descriptor(), {}, &keys);
  return keys;
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TEST_PATHS_H_
