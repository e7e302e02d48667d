// The list of all keys of the job file, for people: docs/job-keys.md and `troupe keys`. Made from
// the schema (proto/troupe/v1/job.proto). Pure.
#ifndef TROUPE_PLAN_JOB_KEY_TABLE_H_
#define TROUPE_PLAN_JOB_KEY_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text/display_width.h"

namespace troupe {

struct KeyRow {
  std::string key;                 // "data.blend[].weight"
  std::string type;                // "integer", "number", "text", "list of at most 8 texts"
  std::string default_value;       // "1F1B"; empty where there is none
  std::string absent;              // the meaning of an absent key without default_value; else empty
  std::string range;               // "[1, 64]"; empty: any value of the type
  std::vector<std::string> words;  // empty: not enumerated
  std::string doc;
};

// One row for each key at or below `prefix`, a dotted path, in the order of the schema; all keys
// for an empty prefix. The index of a list, "[]" or "[0]", may be left out.
std::vector<KeyRow> KeyTable(std::string_view prefix);

// INVALID_ARGUMENT that names the key that may be meant by `prefix`, for which the table is empty.
Status NoSuchKey(std::string_view prefix);

// Two lines for each key, such as
//
//   training.steps: integer in [1, 2^40], default 1000
//       Steps of the job.
//
// A line that is wider than `columns` is broken: the rest of its values is indented by 8 columns,
// that of its meaning by 4.
std::string KeyTableToText(const std::vector<KeyRow>& rows, size_t columns = kAnyColumns);

// A Markdown page with `rows` as a table.
std::string KeyTableToMarkdown(const std::vector<KeyRow>& rows);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEY_TABLE_H_
