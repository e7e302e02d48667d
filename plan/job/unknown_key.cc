#include "plan/job/unknown_key.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text/edit_distance.h"
#include "plan/job/foreign_keys.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Collects every key of the schema below `type` as a dotted path. `prefix` has a dot at its end.
void CollectKeys(const Descriptor& type, const std::string& prefix,
                 std::vector<std::string>* keys) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    keys->push_back(path);
    if (field.message_type() != nullptr) CollectKeys(*field.message_type(), path + ".", keys);
  }
}

}  // namespace

std::string UnknownKeyText(const Descriptor& root, std::string_view path) {
  const bool is_job = &root == v1::JobSpec::descriptor();
  if (is_job) {
    if (std::string text = ForeignKeyText(path); !text.empty()) return text;
  }
  std::vector<std::string> keys;
  CollectKeys(root, "", &keys);
  const auto last_word = [](std::string_view dotted) {
    return dotted.substr(dotted.rfind('.') + 1);
  };
  const auto rank = [&](std::string_view key) {
    return std::pair(EditDistance(last_word(path), last_word(key)), EditDistance(path, key));
  };
  const std::string& nearest = *std::min_element(
      keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  // One letter away in the section that was typed, it is meant.
  const bool is_meant = rank(nearest).second <= 1;
  if (is_job && rank(nearest).first > 0 && !is_meant) {
    if (std::string text = NearForeignKeyText(path); !text.empty()) return text;
  }
  if (rank(nearest).first * 3 > last_word(path).size()) return "";
  return "; the nearest known key is " + nearest;
}

}  // namespace troupe
