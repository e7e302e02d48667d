// The prose of a file: its comments, string literals and names of tests, or all of a page. Phrases
// are found also where they go on in the next line.
#ifndef TROUPE_TESTS_TIDY_PROSE_H_
#define TROUPE_TESTS_TIDY_PROSE_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {

struct ProseLine {
  size_t number = 0;  // in the file, from 1
  std::string text;   // lower case
};

// Returns the comments, string literals and words of test names of a C++, CUDA or protobuf file,
// line by line; of other files all lines, with the words of test names at the ends of theirs.
std::vector<ProseLine> ProseOf(const SourceFile& file);

// Returns the numbers of the lines in which `phrase` begins. It is found as whole words only, and
// its words may be in consecutive lines of `prose`.
std::vector<size_t> LinesWith(const std::vector<ProseLine>& prose, std::string_view phrase);

}  // namespace troupe

#endif  // TROUPE_TESTS_TIDY_PROSE_H_
