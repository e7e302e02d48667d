// Measures how much two words differ, to find the word that was meant. Pure.
#ifndef TROUPE_BASE_TEXT_EDIT_DISTANCE_H_
#define TROUPE_BASE_TEXT_EDIT_DISTANCE_H_

#include <cstddef>
#include <string_view>

namespace troupe {

// Returns the least number of insertions, deletions and substitutions of one byte, and swaps of
// neighbours, that turn `a` into `b` (the optimal string alignment distance).
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_EDIT_DISTANCE_H_
