// The words that other tools have for the values of a job's keys. Pure.
#ifndef TROUPE_PLAN_JOB_FOREIGN_WORDS_H_
#define TROUPE_PLAN_JOB_FOREIGN_WORDS_H_

#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct ForeignWord {
  std::string_view key;   // a path; empty: any key that has the word `here`
  std::string_view word;  // in lower case, with underscores
  std::string_view here;  // the word of the key; empty if none has the meaning
  std::string_view note;  // a difference, or what to do without a word; empty only if there is one
};

// The table.
std::span<const ForeignWord> ForeignWords();

// Returns the text to append to the error that `key` does not have the value `word`, but one of
// `words`, "cpu, cuda, xla": "; it is called cuda here"; empty if no tool that the table knows has
// the word. Case does not matter, nor whether hyphens or underscores separate words.
std::string ForeignWordText(std::string_view key, std::string_view word, std::string_view words);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_FOREIGN_WORDS_H_
