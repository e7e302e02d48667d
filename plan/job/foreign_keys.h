// The names that other tools have for the keys of a job. Pure.
#ifndef TROUPE_PLAN_JOB_FOREIGN_KEYS_H_
#define TROUPE_PLAN_JOB_FOREIGN_KEYS_H_

#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct ForeignKey {
  std::string_view name;  // the last word of a path, "tp", or a whole path, "data.dir"
  std::string_view key;   // its name here; empty if no key has its meaning
  std::string_view note;  // a difference, or what to do without a key; empty only if there is a key
};

// The table. Names are in lower case, with underscores.
std::span<const ForeignKey> ForeignKeys();

// Returns the text to append to the error that `path` is an unknown key of a job, as "; it is
// called optimizer.lr here"; empty if no tool that the table knows has the name. Case does not
// matter, nor whether words are separated by hyphens.
std::string ForeignKeyText(std::string_view path);

// The same for a name that differs from one of the table by one letter, such as "batchsize". Both
// have 6 letters at least.
std::string NearForeignKeyText(std::string_view path);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_FOREIGN_KEYS_H_
