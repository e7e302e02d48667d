// The result of a search as text and as JSON. Pure.
#ifndef TROUPE_PLAN_SEARCH_SEARCH_TEXT_H_
#define TROUPE_PLAN_SEARCH_SEARCH_TEXT_H_

#include <cstdint>
#include <string>

#include "plan/search/search.h"

namespace troupe {

// One page of text: the best layouts, then the reasons with the number of layouts that each
// rejected, the most frequent first. Lines have at most 80 columns, apart from longer words.
std::string SearchToText(const SearchResult& result);
// One JSON object: best [{keys, step_seconds, mfu, memory_bytes}], rejected [{keys, reason}].
std::string SearchToJson(const SearchResult& result);

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_SEARCH_TEXT_H_
